// Forks a session.
//
// Invariant: a fork shares acknowledged events only. The parent answers first,
// once all that it shows is durable; then the fork is created. Over a store the
// commit of the creation is refused if the parent was removed in between.

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
      auto& shared = backend->shared();
      if (!admit_call(**wanted, shared))
        return;
      if (const auto app = actors::app_of(shared, parent.app))
        app->tell(std::move(*wanted));
      else
        (*wanted)->fail(actors::unknown_session(parent));
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
          shared, std::move(wanted), [parent, past](store& kept) {
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

task<result<session>> fork_session(backend_ptr backend,
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
  co_return co_await create_fork(backend, *fork, past, options.keep_open_calls);
}

} // namespace

pending<session>
session_service::fork(session_key key, fork_options options, std::string id) {
  return actors::make_stepwise(
    fork_session(backend_, std::move(key), options, std::move(id)));
}

} // namespace troupe
