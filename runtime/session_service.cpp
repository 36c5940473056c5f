#include "troupe/runtime/session_service.hpp"

#include "troupe/actors/artifact_call.hpp"
#include "troupe/actors/backend.hpp"
#include "troupe/actors/failure.hpp"
#include "troupe/actors/follow_control.hpp"
#include "troupe/actors/owners/app.hpp"
#include "troupe/actors/owners/direct_read.hpp"
#include "troupe/actors/owners/directory.hpp"
#include "troupe/actors/owners/session_letters.hpp"
#include "troupe/actors/owners/store_queue.hpp"
#include "troupe/actors/pending_call.hpp"
#include "troupe/actors/sessions/list_gather.hpp"
#include "troupe/actors/stepwise_call.hpp"
#include "troupe/core/support/blank.hpp"
#include "troupe/core/support/recent_writes.hpp"
#include "troupe/runtime/session_writer.hpp"

#include <fmt/format.h>

namespace troupe {

namespace {

using actors::app_of;
using actors::emplace_pending;
using actors::make_pending;
using detail::session_backend;

// Makes the page of a list from stored rows.
session_page make_page(std::vector<session_row> rows, std::size_t limit) {
  session_page page;
  const bool more = rows.size() > limit;
  if (more)
    rows.resize(limit);
  for (auto& row : rows) {
    hide_recent_writes(row.user);
    hide_recent_writes(row.app);
    page.sessions.emplace_back(
      std::move(row.key),
      readonly_state(
        {std::move(row.session), std::move(row.user), std::move(row.app), {}}),
      event_slice(),
      row.last_update_time,
      row.revision);
  }
  if (more && !page.sessions.empty())
    page.next_cursor = actors::make_cursor(page.sessions.back());
  return page;
}

// Wraps `done`: first removes the artifacts by `remove`, which may wait for a
// disk.
template <class Remove>
completion<bool> with_artifacts(const std::shared_ptr<actors::setup>& shared,
                                completion<bool> done,
                                Remove remove) {
  if (!shared->artifacts)
    return done;
  return [shared, done = std::move(done), remove = std::move(remove)](
           result<bool> removed) {
    if (!removed)
      return done(std::move(removed));
    // Counted on its own: the call that removed the state ends when this
    // returns, and the runtime could then end.
    shared->calls.enter(0);
    shared->artifacts->post([shared, done, remove, removed] {
      const auto gone = remove(*shared->artifacts->store);
      done(gone ? removed : result<bool>(gone.error()));
      shared->calls.leave(0);
    });
  };
}

using backend_ptr = std::shared_ptr<session_backend>;

// -- the start of each call ---------------------------------------------------

void start_create(const backend_ptr& backend,
                  create_request request,
                  completion<session> done) {
  auto& shared = backend->shared();
  auto wanted = actors::make_create(std::move(request), shared);
  if (!wanted)
    return done(wanted.error());
  (*wanted)->created_done = std::move(done);
  if (!admit_call(**wanted, shared))
    return;
  if (const auto app = shared.apps->open(backend->share(), (*wanted)->key.app))
    app->tell(std::move(*wanted));
  else
    (*wanted)->fail(actors::closed());
}

void start_get(const backend_ptr& backend,
               const session_key& key,
               get_options options,
               completion<session> done) {
  auto wanted = actors::make_get(key, options);
  if (!wanted)
    return done(wanted.error());
  (*wanted)->done = std::move(done);
  actors::send_get(backend->shared(), std::move(*wanted));
}

// -- earlier revisions --------------------------------------------------------

// False if another caller has removed the session meanwhile, also if there is a
// new one of that key. A session that had no event was at revision 0, which is
// not read.
result<bool> is_still_there(store& kept, const session& present) {
  if (present.events().empty())
    return true;
  const auto found
    = kept.load_events(present.key(), present.revision(), present.revision());
  // The session was trimmed to its newest revision.
  if (!found && found.error().code() == errc::gone)
    return true;
  if (!found)
    return found.error();
  return found->size() == 1
         && found->front()->id == present.events().back()->id;
}

error changed_while_read(const session_key& key) {
  return {
    errc::conflict,
    fmt::format("session {} changed while it was read: it was removed, or "
                "its store lost events; read it again",
                to_string(key))};
}

// The merged state of an earlier revision, with the keys of user and app as
// they were then, or those of `present`.
readonly_state merge(state_map keys,
                     std::optional<earlier_shared_state> shared,
                     const session& present) {
  if (!shared)
    return present.state().with_session(std::move(keys));
  hide_recent_writes(shared->user);
  hide_recent_writes(shared->app);
  return readonly_state(
    {std::move(keys), std::move(shared->user), std::move(shared->app), {}});
}

// A session from the store, with the state of user and app of `present` if the
// store does not keep theirs. Fails with `changed_while_read` if the store has
// another session now.
result<session>
read_earlier(store& kept, const session& present, const get_options& options) {
  auto loaded = kept.load_session_at(
    present.key(), *options.at, options.num_recent_events.value_or(SIZE_MAX));
  if (!loaded && loaded.error().code() != errc::not_found)
    return loaded.error();
  const bool is_earlier = *options.at < present.revision();
  std::optional<earlier_shared_state> shared;
  if (is_earlier) {
    auto found = kept.load_shared_state_at(present.key(), *options.at);
    if (!found)
      return found.error();
    shared = *std::move(found);
  }
  const auto is_same = is_still_there(kept, present);
  if (!is_same)
    return is_same.error();
  if (!loaded || !*loaded || !*is_same)
    return changed_while_read(present.key());
  auto& past = **loaded;
  event_log log(past.scope.revision - past.events.size());
  for (auto& said : past.events)
    log.push_back(std::move(said));
  const auto moment = !is_earlier ? session_moment::now
                      : shared    ? session_moment::earlier
                                  : session_moment::mixed;
  return session(present.key(),
                 merge(std::move(past.scope.keys), std::move(shared), present),
                 options.after ? log.slice().after(*options.after)
                               : log.slice(),
                 past.last_update_time,
                 past.scope.revision,
                 moment,
                 past.first_revision);
}

// The session checks the revision first, because its answer waits for the
// commits that it is based on. Reading the events afterwards is safe: they
// never change. If the store has another session by then, all is read again: a
// session that is gone is then `not_found`.
void start_earlier_get(const backend_ptr& backend,
                       const session_key& key,
                       const get_options& options,
                       completion<session> done,
                       int attempts_left = 3) {
  auto read_it = [backend, options, attempts_left, done = std::move(done)](
                   result<session> present) {
    // Nothing is before the creation, and nothing has to be read.
    if (!present || present->revision() == 0)
      return done(std::move(present));
    auto wanted = std::make_unique<actors::answered<session>>();
    wanted->done =
      [backend, key = present->key(), options, attempts_left, done](
        result<session> past) {
        if (!past && past.error().code() == errc::conflict && attempts_left > 1)
          start_earlier_get(backend, key, options, done, attempts_left - 1);
        else
          done(std::move(past));
      };
    auto& shared = backend->shared();
    if (admit_call(*wanted, shared))
      actors::read_then_complete<session>(
        shared,
        std::move(wanted),
        [present = std::move(*present), options](store& kept) {
          return read_earlier(kept, present, options);
        });
  };
  start_get(backend, key, options, std::move(read_it));
}

// Reads a session: on the calling thread if its owners sleep, or by a letter.
class get_start {
public:
  get_start(backend_ptr backend, session_key&& key, const get_options& options)
    : backend_(std::move(backend)),
      key_(std::move(key)),
      options_(options) {}

  std::optional<result<session>> answer_now() const {
    return actors::read_directly(backend_->shared(), key_, options_);
  }

  void operator()(completion<session> done) const {
    if (options_.at && backend_->shared().store)
      start_earlier_get(backend_, key_, options_, std::move(done));
    else
      start_get(backend_, key_, options_, std::move(done));
  }

private:
  const backend_ptr backend_;
  const session_key key_;
  const get_options options_;
};

// A session to read, or to create if it is missing. Another caller may create
// or remove it between the two steps; then both are tried again.
struct wanted_session {
  session_service service;
  create_request request;
  session_key key;

  // A blank id is a new one.
  bool is_new() const { return is_blank(key.id); }
};

bool is_missing(const result<session>& found) {
  return !found && found.error().code() == errc::not_found;
}

bool was_late(const result<session>& created) {
  return !created && created.error().code() == errc::already_exists;
}

void create_wanted(const std::shared_ptr<wanted_session>& wanted,
                   completion<session> done);

void find_wanted(const std::shared_ptr<wanted_session>& wanted,
                 completion<session> done) {
  if (wanted->is_new())
    return create_wanted(wanted, std::move(done));
  wanted->service.get(wanted->key)
    .then([wanted, done = std::move(done)](result<session> found) {
      if (is_missing(found))
        create_wanted(wanted, done);
      else
        done(std::move(found));
    });
}

void create_wanted(const std::shared_ptr<wanted_session>& wanted,
                   completion<session> done) {
  wanted->service.create(wanted->request)
    .then([wanted, done = std::move(done)](result<session> created) {
      if (was_late(created))
        find_wanted(wanted, done);
      else
        done(std::move(created));
    });
}

class find_or_create final : public detail::call<session> {
public:
  find_or_create(backend_ptr backend, create_request request)
    : wanted_(std::make_shared<wanted_session>(
      wanted_session{session_service(std::move(backend)),
                     request,
                     {request.app, request.user, request.id}})) {}

  void start(completion<session> done) override {
    find_wanted(wanted_, std::move(done));
  }

  // Each step blocks by itself: the answer to a blocked thread is given inside
  // of an owner, where no other call may start.
  result<session> wait() override {
    for (;;) {
      if (!wanted_->is_new()) {
        auto found = wanted_->service.get(wanted_->key).get();
        if (!is_missing(found))
          return found;
      }
      auto created = wanted_->service.create(wanted_->request).get();
      if (!was_late(created))
        return created;
    }
  }

private:
  const std::shared_ptr<wanted_session> wanted_;
};

// A checked request for a page.
struct page_request {
  std::string app;
  std::optional<std::string> user;
  std::optional<actors::page_start> from;
  std::size_t limit = 0;
};

result<page_request> check_list(const list_request& request) {
  page_request checked;
  auto app = check_id(request.app, "app");
  if (!app)
    return app.error();
  checked.app = std::move(*app);
  if (request.user) {
    auto user = check_id(*request.user, "user");
    if (!user)
      return user.error();
    checked.user = std::move(*user);
  }
  if (!request.cursor.empty()) {
    auto from = actors::read_cursor(request.cursor);
    if (!from)
      return from.error();
    checked.from = std::move(*from);
  }
  if (request.limit == 0)
    return error(errc::invalid_argument, "the limit of a list is 0");
  checked.limit = request.limit;
  return checked;
}

// Reads a page from the store.
void read_page(actors::setup& shared,
               page_request wanted,
               completion<session_page> done) {
  row_query query{std::move(wanted.app), std::move(wanted.user), 0, {}};
  // One more row than the page shows tells whether another page follows.
  query.limit = wanted.limit + (wanted.limit < SIZE_MAX ? 1 : 0);
  if (wanted.from)
    query.behind
      = row_position{wanted.from->time, wanted.from->user, wanted.from->id};
  auto answered = std::make_unique<actors::answered<session_page>>();
  answered->done = std::move(done);
  answered->gate = &shared.calls;
  actors::read_then_complete<session_page>(
    shared,
    std::move(answered),
    [query = std::move(query),
     limit = wanted.limit](store& kept) -> result<session_page> {
      auto rows = kept.list(query);
      if (!rows)
        return rows.error();
      return make_page(std::move(*rows), limit);
    });
}

void start_list(const backend_ptr& backend,
                const list_request& request,
                completion<session_page> done) {
  auto checked = check_list(request);
  if (!checked)
    return done(checked.error());
  auto& shared = backend->shared();
  if (!actors::admit_call(shared))
    return done(actors::closed());
  if (shared.store)
    return read_page(shared, std::move(*checked), std::move(done));
  auto wanted
    = std::make_unique<actors::list>(std::make_shared<actors::list_gather>(
      checked->limit, std::move(checked->from), std::move(done), shared));
  wanted->only_user = std::move(checked->user);
  // Without an app this was the last part: the page is empty and complete.
  if (const auto app = shared.apps->find(checked->app))
    app->tell(std::move(wanted));
}

void start_remove(const backend_ptr& backend,
                  const session_key& key,
                  const remove_options& options,
                  completion<bool> done) {
  auto checked = check_key(key);
  if (!checked)
    return done(checked.error());
  auto wanted = actors::make_remove(*checked, options);
  (*wanted)->done = with_artifacts(
    backend->share(), std::move(done), [key = *checked](artifact_store& files) {
      return files.remove_session(key);
    });
  if (!admit_call(**wanted, backend->shared()))
    return;
  if (const auto app = app_of(backend->shared(), checked->app))
    return app->tell(std::move(*wanted));
  (*wanted)->outcome = false;
  (*wanted)->complete();
}

// Removes sessions, state and artifacts of a user. The ids are checked.
void start_remove_data(const backend_ptr& backend,
                       const owner_name& of,
                       completion<bool> done) {
  auto wanted = std::make_unique<actors::remove_user>();
  wanted->user = of.user;
  wanted->done = with_artifacts(
    backend->share(), std::move(done), [of](artifact_store& files) {
      return files.remove_user(of.app, of.user);
    });
  if (!admit_call(*wanted, backend->shared()))
    return;
  if (const auto known = app_of(backend->shared(), of.app))
    return known->tell(std::move(wanted));
  wanted->outcome = false;
  wanted->complete();
}

result<owner_name> user_of(const std::string& app, const std::string& user) {
  auto app_name = check_id(app, "app");
  if (!app_name)
    return app_name.error();
  auto user_name = check_id(user, "user");
  if (!user_name)
    return user_name.error();
  return owner_name{std::move(*app_name), std::move(*user_name)};
}

void start_remove_user(const backend_ptr& backend,
                       const std::string& app,
                       const std::string& user,
                       completion<bool> done) {
  const auto of = user_of(app, user);
  if (!of)
    return done(of.error());
  start_remove_data(backend, *of, std::move(done));
}

pending<bool> remove_memory(const backend_ptr& backend, const owner_name& of) {
  return actors::make_memory_call<bool>(
    backend->share(),
    [of](memory_service& kept) { return kept.remove_user(of.app, of.user); });
}

pending<bool> remove_data(const backend_ptr& backend, const owner_name& of) {
  return make_pending<bool>(backend->shared(),
                            [backend, of](completion<bool> done) {
                              start_remove_data(backend, of, std::move(done));
                            });
}

// See runtime/session_memory.cpp.
task<result<bool>>
remove_with_memory(backend_ptr backend, std::string app, std::string user) {
  const auto of = user_of(app, user);
  if (!of)
    co_return of.error();
  const auto remembered = co_await remove_memory(backend, *of);
  if (!remembered)
    co_return remembered.error();
  const auto removed = co_await remove_data(backend, *of);
  if (!removed)
    co_return removed.error();
  const auto added = co_await remove_memory(backend, *of);
  if (!added)
    co_return added.error();
  co_return *remembered || *removed || *added;
}

// Reads the keys of a user, or of the app if `user` is unset, without prefix.
pending<json> read_keys(const backend_ptr& backend,
                        std::string app,
                        std::optional<std::string> user) {
  return make_pending<json>(
    backend->shared(),
    [backend, app = std::move(app), user = std::move(user)](
      completion<json> done) {
      actors::read_state_of(
        backend->shared(),
        app,
        user,
        [done = std::move(done)](result<actors::scope_keys> read) {
          if (!read)
            return done(read.error());
          auto shown = json::object();
          read->keys.for_each(
            [&shown](std::string_view name, const value& held) {
              shown[std::string(name)] = held.data();
            });
          done(std::move(shown));
        });
    });
}

// Starts an append. A class, unlike the other starts, because an event is large
// and each layer of function objects would move it once more.
template <class Event>
class append_start {
public:
  append_start(backend_ptr backend,
               session_key&& key,
               Event&& said,
               const append_options& options) noexcept
    : backend_(std::move(backend)),
      key_(std::move(key)),
      said_(std::move(said)),
      options_(options) {}

  void operator()(completion<event_ptr> done) {
    actors::append_event(
      backend_->shared(), key_, std::move(said_), options_, std::move(done));
  }

private:
  const backend_ptr backend_;
  const session_key key_;
  Event said_;
  const append_options options_;
};

template <class Event>
pending<event_ptr> append(const backend_ptr& backend,
                          session_key& key,
                          Event& said,
                          const append_options& options) {
  return emplace_pending<event_ptr, append_start<Event>>(
    backend->shared(), backend, std::move(key), std::move(said), options);
}

} // namespace

session_service::session_service(
  std::shared_ptr<detail::session_backend> backend)
  : backend_(std::move(backend)) {}

pending<session> session_service::create(create_request request) {
  return make_pending<session>(
    backend_->shared(),
    [backend = backend_,
     request = std::move(request)](completion<session> done) mutable {
      start_create(backend, std::move(request), std::move(done));
    });
}

pending<session> session_service::create(create_request request, json state) {
  request.state = std::move(state);
  return create(std::move(request));
}

pending<session> session_service::get_or_create(create_request request) {
  return pending<session>(
    std::make_unique<find_or_create>(backend_, std::move(request)));
}

pending<session> session_service::get_or_create(create_request request,
                                                json state) {
  request.state = std::move(state);
  return get_or_create(std::move(request));
}

pending<session> session_service::get(session_key key, get_options options) {
  return emplace_pending<session, get_start>(
    backend_->shared(), backend_, std::move(key), options);
}

follower session_service::follow(session_key key, follow_options options) {
  auto control = std::make_shared<detail::follow_control>(
    backend_->share(), std::move(key), options.from);
  if (backend_->enter_follower(control))
    control->start();
  else
    control->cancel(actors::closed());
  return follower(std::move(control));
}

pending<session_page> session_service::list(list_request request) {
  return make_pending<session_page>(
    backend_->shared(),
    [backend = backend_,
     request = std::move(request)](completion<session_page> done) {
      start_list(backend, request, std::move(done));
    });
}

pending<event_ptr> session_service::append_event(session_key key,
                                                 event said,
                                                 append_options options) {
  return append(backend_, key, said, options);
}

pending<event_ptr> session_service::append_event(session_key key,
                                                 event_ptr said,
                                                 append_options options) {
  return append(backend_, key, said, options);
}

pending<bool> session_service::remove(session_key key, remove_options options) {
  return make_pending<bool>(
    backend_->shared(),
    [backend = backend_, key = std::move(key), options](completion<bool> done) {
      start_remove(backend, key, options, std::move(done));
    });
}

pending<bool> session_service::remove_user(std::string app, std::string user) {
  if (backend_->shared().memory)
    return actors::make_stepwise(
      remove_with_memory(backend_, std::move(app), std::move(user)));
  return make_pending<bool>(
    backend_->shared(),
    [backend = backend_, app = std::move(app), user = std::move(user)](
      completion<bool> done) {
      start_remove_user(backend, app, user, std::move(done));
    });
}

pending<json> session_service::user_state(std::string app, std::string user) {
  return read_keys(backend_, std::move(app), std::move(user));
}

pending<json> session_service::app_state(std::string app) {
  return read_keys(backend_, std::move(app), std::nullopt);
}

shared_state session_service::state_of_app(std::string app) {
  return {backend_, std::move(app), std::nullopt};
}

shared_state session_service::state_of_user(std::string app, std::string user) {
  return {backend_, std::move(app), std::move(user)};
}

session_writer session_service::writer(session_key key) {
  return {backend_, std::move(key)};
}

live_state session_service::state(session_key key) {
  return {backend_, std::move(key)};
}

pending<std::vector<open_call>> session_service::open_calls(session_key key) {
  auto convert = [](result<session> fetched) -> result<std::vector<open_call>> {
    if (!fetched)
      return fetched.error();
    return troupe::open_calls(fetched->events());
  };
  using calls = std::vector<open_call>;
  using made = detail::converted_call<calls, session, decltype(convert)>;
  return pending<calls>(std::make_unique<made>(get(std::move(key)), convert));
}

} // namespace troupe
