#include "troupe/runtime/session_service.hpp"

#include "troupe/actors/backend.hpp"
#include "troupe/actors/blocking_call.hpp"
#include "troupe/actors/list_gather.hpp"
#include "troupe/actors/session_letters.hpp"
#include "troupe/actors/store_queue.hpp"
#include "troupe/actors/tool_pool.hpp"
#include "troupe/runtime/session_writer.hpp"

namespace troupe {

namespace {

using actors::app_of;
using actors::as_inbox;
using actors::wait_for;
using detail::session_backend;

// The page of a list, from what is stored.
session_page make_page(std::vector<session_row> rows, std::size_t limit) {
  session_page page;
  const bool more = rows.size() > limit;
  if (more)
    rows.resize(limit);
  for (auto& row : rows)
    page.sessions.emplace_back(
      std::move(row.key),
      readonly_state(
        {std::move(row.session), std::move(row.user), std::move(row.app), {}}),
      event_slice(),
      row.last_update_time,
      row.revision);
  if (more && !page.sessions.empty())
    page.next_cursor = actors::make_cursor(page.sessions.back());
  return page;
}

// Lets `done` be called when `remove` has removed the artifacts, too, which may
// take a disk.
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
    // The call itself is over when this returns, and the runtime may end.
    shared->calls.enter(0);
    shared->artifacts->post([shared, done, remove, removed] {
      const auto gone = remove(*shared->artifacts->store);
      done(gone ? removed : result<bool>(gone.error()));
      shared->calls.leave(0);
    });
  };
}

} // namespace

session_service::session_service(
  std::shared_ptr<detail::session_backend> backend)
  : backend_(std::move(backend)) {}

// -- create
// --------------------------------------------------------------------

void session_service::create(create_request request, completion<session> done) {
  auto wanted = actors::make_create(std::move(request), backend_->shared());
  if (!wanted)
    return done(wanted.error());
  auto& shared = backend_->shared();
  (*wanted)->created_done = std::move(done);
  if (!enter(**wanted, shared))
    return;
  if (const auto app = shared.apps.open(backend_->share(), (*wanted)->key.app))
    as_inbox(app).tell(std::move(*wanted));
  else
    (*wanted)->fail(actors::closed());
}

result<session> session_service::create(create_request request) {
  return wait_for<session>([&](completion<session> done) {
    create(std::move(request), std::move(done));
  });
}

// -- get
// -----------------------------------------------------------------------

void session_service::get(const session_key& key,
                          get_options options,
                          completion<session> done) {
  auto wanted = actors::make_get(key, options);
  if (!wanted)
    return done(wanted.error());
  (*wanted)->done = std::move(done);
  if (!enter(**wanted, backend_->shared()))
    return;
  if (const auto app = app_of(backend_->shared(), (*wanted)->key.app))
    as_inbox(app).tell(std::move(*wanted));
  else
    (*wanted)->fail(actors::unknown_session((*wanted)->key));
}

result<session> session_service::get(const session_key& key,
                                     get_options options) {
  return wait_for<session>(
    [&](completion<session> done) { get(key, options, std::move(done)); });
}

// -- list
// ----------------------------------------------------------------------

void session_service::list(const list_request& request,
                           completion<session_page> done) {
  auto app_name = check_id(request.app, "app");
  if (!app_name)
    return done(app_name.error());
  std::optional<std::string> user;
  if (request.user) {
    auto checked = check_id(*request.user, "user");
    if (!checked)
      return done(checked.error());
    user = std::move(*checked);
  }
  std::optional<actors::page_start> from;
  if (!request.cursor.empty()) {
    auto start = actors::read_cursor(request.cursor);
    if (!start)
      return done(start.error());
    from = std::move(*start);
  }
  if (request.limit == 0)
    return done(error(errc::invalid_argument, "the limit of a list is 0"));
  auto& shared = backend_->shared();
  if (!actors::enter(shared))
    return done(actors::closed());
  if (shared.store) {
    row_query query{std::move(*app_name), std::move(user), 0, {}};
    // One more, to know whether there is more.
    query.limit = request.limit + (request.limit < SIZE_MAX ? 1 : 0);
    if (from)
      query.behind = row_position{from->time, from->user, from->id};
    auto answered = std::make_unique<actors::answered<session_page>>();
    answered->done = std::move(done);
    answered->gate = &shared.calls;
    return actors::read_then_complete(
      shared,
      std::move(answered),
      [query = std::move(query),
       limit = request.limit](store& kept) -> result<session_page> {
        auto rows = kept.list(query);
        if (!rows)
          return rows.error();
        return make_page(std::move(*rows), limit);
      });
  }
  auto wanted
    = std::make_unique<actors::list>(std::make_shared<actors::list_gather>(
      request.limit, std::move(from), std::move(done), backend_->shared()));
  wanted->only_user = std::move(user);
  // Without an app this was the last part already, and the page is empty.
  if (const auto app = shared.apps.find(*app_name))
    as_inbox(app).tell(std::move(wanted));
}

result<session_page> session_service::list(const list_request& request) {
  return wait_for<session_page>(
    [&](completion<session_page> done) { list(request, std::move(done)); });
}

// -- append
// --------------------------------------------------------------------

void session_service::append_event(const session_key& key,
                                   event said,
                                   append_options options,
                                   completion<event_ptr> done) {
  actors::append_event(
    backend_->shared(), key, std::move(said), options, std::move(done));
}

void session_service::append_event(const session_key& key,
                                   event_ptr said,
                                   append_options options,
                                   completion<event_ptr> done) {
  actors::append_event(
    backend_->shared(), key, std::move(said), options, std::move(done));
}

result<event_ptr> session_service::append_event(const session_key& key,
                                                event said,
                                                append_options options) {
  return wait_for<event_ptr>([&](completion<event_ptr> done) {
    append_event(key, std::move(said), options, std::move(done));
  });
}

result<event_ptr> session_service::append_event(const session_key& key,
                                                event_ptr said,
                                                append_options options) {
  return wait_for<event_ptr>([&](completion<event_ptr> done) {
    append_event(key, std::move(said), options, std::move(done));
  });
}

// -- remove
// --------------------------------------------------------------------

void session_service::remove(const session_key& key, completion<bool> done) {
  auto checked = check_key(key);
  if (!checked)
    return done(checked.error());
  auto wanted = actors::make_remove(*checked);
  (*wanted)->done = with_artifacts(backend_->share(),
                                   std::move(done),
                                   [key = *checked](artifact_store& files) {
                                     return files.remove_session(key);
                                   });
  if (!enter(**wanted, backend_->shared()))
    return;
  if (const auto app = app_of(backend_->shared(), checked->app))
    return as_inbox(app).tell(std::move(*wanted));
  (*wanted)->outcome = false;
  (*wanted)->complete();
}

result<bool> session_service::remove(const session_key& key) {
  return wait_for<bool>(
    [&](completion<bool> done) { remove(key, std::move(done)); });
}

void session_service::remove_user(const std::string& app,
                                  const std::string& user,
                                  completion<bool> done) {
  auto app_name = check_id(app, "app");
  if (!app_name)
    return done(app_name.error());
  auto user_name = check_id(user, "user");
  if (!user_name)
    return done(user_name.error());
  auto wanted = std::make_unique<actors::remove_user>();
  wanted->user = std::move(*user_name);
  wanted->done = with_artifacts(
    backend_->share(),
    std::move(done),
    [app_id = *app_name, user_id = wanted->user](artifact_store& files) {
      return files.remove_user(app_id, user_id);
    });
  if (!enter(*wanted, backend_->shared()))
    return;
  if (const auto known = app_of(backend_->shared(), *app_name))
    return as_inbox(known).tell(std::move(wanted));
  wanted->outcome = false;
  wanted->complete();
}

result<bool> session_service::remove_user(const std::string& app,
                                          const std::string& user) {
  return wait_for<bool>(
    [&](completion<bool> done) { remove_user(app, user, std::move(done)); });
}

// -- the state of one owner
// ----------------------------------------------------

void session_service::get_user_state(const std::string& app,
                                     const std::string& user,
                                     completion<json> done) {
  auto app_name = check_id(app, "app");
  if (!app_name)
    return done(app_name.error());
  auto user_name = check_id(user, "user");
  if (!user_name)
    return done(user_name.error());
  auto wanted = std::make_unique<actors::read_state>();
  wanted->user = std::move(*user_name);
  wanted->done = std::move(done);
  if (!enter(*wanted, backend_->shared()))
    return;
  if (const auto known = app_of(backend_->shared(), *app_name))
    as_inbox(known).tell(std::move(wanted));
  else
    wanted->complete();
}

result<json> session_service::get_user_state(const std::string& app,
                                             const std::string& user) {
  return wait_for<json>(
    [&](completion<json> done) { get_user_state(app, user, std::move(done)); });
}

void session_service::get_app_state(const std::string& app,
                                    completion<json> done) {
  auto app_name = check_id(app, "app");
  if (!app_name)
    return done(app_name.error());
  auto wanted = std::make_unique<actors::read_state>();
  wanted->done = std::move(done);
  if (!enter(*wanted, backend_->shared()))
    return;
  if (const auto known = app_of(backend_->shared(), *app_name))
    as_inbox(known).tell(std::move(wanted));
  else
    wanted->complete();
}

result<json> session_service::get_app_state(const std::string& app) {
  return wait_for<json>(
    [&](completion<json> done) { get_app_state(app, std::move(done)); });
}

// -- the live handle
// -----------------------------------------------------------

session_state session_service::state(session_key key) {
  return {*this, std::move(key)};
}

session_writer session_service::writer(session_key key) {
  return {backend_, std::move(key)};
}

result<readonly_state> session_state::snapshot() {
  auto fetched = service_.get(key_, {.num_recent_events = 0});
  if (!fetched)
    return fetched.error();
  return fetched->state();
}

result<std::optional<value>> session_state::get(std::string_view key) {
  auto checked = check_key(key);
  if (!checked)
    return checked.error();
  auto newest = snapshot();
  if (!newest)
    return newest.error();
  return newest->find(key);
}

result<void>
session_state::write(std::string_view key, operation_kind kind, json operand) {
  event change;
  change.author = "system";
  auto recorded
    = change.actions.state_delta.record(key, kind, std::move(operand));
  if (!recorded)
    return recorded;
  auto stored = service_.append_event(key_, std::move(change));
  if (!stored)
    return stored.error();
  return {};
}

result<void> session_state::set(std::string_view key, json data) {
  return write(key, operation_kind::set, std::move(data));
}

result<void> session_state::remove(std::string_view key) {
  return write(key, operation_kind::erase, nullptr);
}

} // namespace troupe
