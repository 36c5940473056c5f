// Forks a session.
//
// Invariant: a fork shares acknowledged events only. The parent answers first,
// once all that it shows is durable; then the fork is created. Over a store the
// commit of the creation is refused if the parent was removed in between.
// Artifacts are not in that store: they follow, and a fork that does not get
// them is removed again.

#include "troupe/actors/artifact_call.hpp"
#include "troupe/actors/artifact_versions.hpp"
#include "troupe/actors/backend.hpp"
#include "troupe/actors/failure.hpp"
#include "troupe/actors/owners/app.hpp"
#include "troupe/actors/owners/directory.hpp"
#include "troupe/actors/owners/session_letters.hpp"
#include "troupe/actors/owners/store_queue.hpp"
#include "troupe/actors/sessions/forked_past.hpp"
#include "troupe/actors/stepwise_call.hpp"
#include "troupe/core/support/blank.hpp"
#include "troupe/runtime/session_service.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace troupe {

namespace {

using actors::forked_past;
using actors::make_pending;
using backend_ptr = std::shared_ptr<detail::session_backend>;
using past_ptr = std::shared_ptr<forked_past>;

// Asks the parent, which refuses a revision that it does not have. Without a
// store it fills `past`.
pending<session> ask_parent(const backend_ptr& backend,
                            const session_key& parent,
                            std::optional<std::uint64_t> at,
                            const past_ptr& past) {
  return make_pending<session>(
    backend->shared(), [backend, parent, at, past](completion<session> done) {
      auto wanted
        = actors::make_get(parent, {.num_recent_events = 0, .at = at});
      if (!wanted)
        return done(wanted.error());
      (*wanted)->fork = past;
      (*wanted)->done = std::move(done);
      actors::send_get(backend->shared(), std::move(*wanted));
    });
}

// The second read may find another session of that key. The commit of the fork
// then finds that the parent has moved.
result<bool>
read_past(store& kept, const session_key& parent, forked_past& past) {
  if (!kept.can_fork())
    return error(errc::invalid_argument,
                 "this store cannot fork sessions: it does not override "
                 "store::can_fork");
  auto found = kept.load_session(parent, {.events_max = 0, .ids_max = 0});
  if (found && *found) {
    past.from.incarnation = (*found)->incarnation;
    if ((*found)->scope.revision != past.from.revision)
      found = kept.load_session_at(parent, past.from.revision, 0);
  }
  if (!found)
    return found.error();
  if (!*found)
    return actors::unknown_session(parent);
  past.first_revision = std::min((*found)->first_revision, past.from.revision);
  past.keys = std::move((*found)->scope.keys);
  past.last_update_time = (*found)->last_update_time;
  return true;
}

pending<bool> ask_store(const backend_ptr& backend,
                        const session_key& parent,
                        const past_ptr& past) {
  return make_pending<bool>(
    backend->shared(), [backend, parent, past](completion<bool> done) {
      auto wanted = std::make_unique<actors::answered<bool>>();
      wanted->done = std::move(done);
      auto& shared = backend->shared();
      if (admit_call(*wanted, shared))
        actors::read_then_complete<bool>(
          shared, std::move(wanted), [backend, parent, past](store& kept) {
            past->losses = backend->shared().store->losses();
            return read_past(kept, parent, *past);
          });
    });
}

pending<session> create_fork(const backend_ptr& backend,
                             const session_key& key,
                             const past_ptr& past,
                             bool keeps_open_calls) {
  return make_pending<session>(
    backend->shared(),
    [backend, key, past, keeps_open_calls](completion<session> done) {
      auto& shared = backend->shared();
      auto wanted = actors::make_fork(key, past, keeps_open_calls, shared);
      if (!wanted)
        return done(wanted.error());
      (*wanted)->created_done = std::move(done);
      if (!admit_call(**wanted, shared))
        return;
      if (const auto app = shared.apps->open(backend->share(), key.app))
        app->tell(std::move(*wanted));
      else
        (*wanted)->fail(actors::closed());
    });
}

// -- artifacts ----

// By name, how many versions of an artifact a fork gets.
using version_counts = std::map<std::string, std::size_t>;

bool is_of_user(const std::string& name) {
  return name.starts_with(key_prefix_user);
}

// Artifacts can be saved for a session that does not exist.
error has_artifacts(const session_key& fork, const std::string& name) {
  return {errc::already_exists,
          fmt::format("there is no session {}, but an artifact '{}' of it: "
                      "remove that, or choose another id",
                      to_string(fork),
                      name)};
}

error were_removed(const session_key& parent, const std::string& name) {
  return {errc::not_found,
          fmt::format("the artifact '{}' of session {} was removed while the "
                      "session was forked; fork it again",
                      name,
                      to_string(parent))};
}

pending<version_counts> count_versions(const backend_ptr& backend,
                                       const session_key& parent,
                                       const session_key& fork) {
  return actors::make_artifact_call<version_counts>(
    backend->share(),
    [parent, fork](artifact_store& kept) -> result<version_counts> {
      const auto taken = kept.list(fork);
      if (!taken)
        return taken.error();
      for (const auto& name : *taken)
        if (!is_of_user(name))
          return has_artifacts(fork, name);
      const auto names = kept.list(parent);
      if (!names)
        return names.error();
      version_counts counts;
      for (const auto& name : *names) {
        if (is_of_user(name))
          continue;
        const auto versions = kept.versions(parent, name);
        if (!versions)
          return versions.error();
        counts.emplace(name, versions->size());
      }
      return counts;
    });
}

pending<bool> copy_versions(const backend_ptr& backend,
                            const session_key& parent,
                            const session_key& fork,
                            const version_counts& counts) {
  return actors::make_artifact_call<bool>(
    backend->share(),
    [parent, fork, counts](artifact_store& kept) -> result<bool> {
      for (const auto& [name, count] : counts) {
        if (auto copied = kept.copy(parent, fork, name, count); !copied)
          return copied.error();
        const auto versions = kept.versions(fork, name);
        if (!versions)
          return versions.error();
        if (versions->size() < count)
          return were_removed(parent, name);
      }
      return true;
    });
}

// Leaves out the versions behind those of the fork's revision.
task<result<bool>> leave_out_later(backend_ptr backend,
                                   session_key parent,
                                   std::uint64_t revision,
                                   version_counts& counts) {
  session_service sessions(backend);
  const auto newest = co_await sessions.get(parent, {.num_recent_events = 0});
  if (!newest)
    co_return newest.error();
  if (newest->revision() <= revision)
    co_return true;
  const auto behind
    = co_await sessions.get(parent,
                            {.num_recent_events = newest->revision() - revision,
                             .at = newest->revision()});
  if (!behind)
    co_return behind.error();
  auto saved = actors::saved_by(behind->events());
  const auto found = co_await actors::find_earlier(
    backend->share(), parent, behind->first_revision(), revision, saved);
  if (!found)
    co_return found.error();
  for (const auto& [name, versions] : saved)
    if (const auto count = counts.find(name); count != counts.end()) {
      const auto shown = versions.earlier
                           ? static_cast<std::size_t>(*versions.earlier) + 1
                           : 0;
      count->second = std::min(count->second, shown);
    }
  co_return true;
}

// The versions that a fork gets; none without an artifact store.
task<result<version_counts>> choose_versions(backend_ptr backend,
                                             session_key parent,
                                             session_key fork,
                                             std::uint64_t revision) {
  if (!backend->shared().artifacts)
    co_return version_counts();
  auto counts = co_await count_versions(backend, parent, fork);
  if (!counts || counts->empty())
    co_return counts;
  const auto left_out
    = co_await leave_out_later(backend, parent, revision, *counts);
  if (!left_out)
    co_return left_out.error();
  co_return counts;
}

error left_without_artifacts(const session_key& fork, const error& cause) {
  return {cause.code(),
          fmt::format("{}; the fork {} stays, without some of its artifacts: "
                      "remove it, or go on without them",
                      cause.message(),
                      to_string(fork))};
}

// Removes a fork that did not get its artifacts, unless others have used it.
task<error> take_back(backend_ptr backend, session fork, error cause) {
  session_service sessions(backend);
  const auto now = co_await sessions.get(fork.key(), {.num_recent_events = 0});
  if (!now || now->revision() != fork.revision())
    co_return left_without_artifacts(fork.key(), cause);
  const auto removed = co_await sessions.remove(fork.key());
  co_return removed ? cause : left_without_artifacts(fork.key(), cause);
}

task<result<session>> fork_once(backend_ptr backend,
                                session_key key,
                                fork_options options,
                                std::string id) {
  const auto parent = check_key(key);
  if (!parent)
    co_return parent.error();
  if (is_blank(id))
    id = backend->shared().environment->new_id();
  const auto fork
    = check_key(session_key{parent->app, parent->user, std::move(id)});
  if (!fork)
    co_return fork.error();
  const auto past = std::make_shared<forked_past>();
  past->from.session = parent->id;
  const auto asked = co_await ask_parent(backend, *parent, options.at, past);
  if (!asked)
    co_return asked.error();
  if (backend->shared().store) {
    past->from.revision = options.at.value_or(asked->revision());
    const auto read = co_await ask_store(backend, *parent, past);
    if (!read)
      co_return read.error();
  }
  const auto versions = co_await choose_versions(
    backend, *parent, *fork, options.at.value_or(asked->revision()));
  if (!versions)
    co_return versions.error();
  const auto made
    = co_await create_fork(backend, *fork, past, options.keep_open_calls);
  if (!made || versions->empty())
    co_return made;
  const auto copied
    = co_await copy_versions(backend, *parent, *fork, *versions);
  if (copied)
    co_return made;
  co_return co_await take_back(backend, *made, copied.error());
}

// A store that has lost events while they were read is read again.
task<result<session>> fork_session(backend_ptr backend,
                                   session_key key,
                                   fork_options options,
                                   std::string id) {
  constexpr int attempts_max = 3;
  for (int attempt = 1;; ++attempt) {
    auto made = co_await fork_once(backend, key, options, id);
    if (made || made.error().code() != errc::conflict
        || attempt == attempts_max)
      co_return made;
  }
}

} // namespace

pending<session>
session_service::fork(session_key key, fork_options options, std::string id) {
  return actors::make_stepwise(
    fork_session(backend_, std::move(key), options, std::move(id)));
}

} // namespace troupe
