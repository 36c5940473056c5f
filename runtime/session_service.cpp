#include "troupe/runtime/session_service.hpp"

#include "troupe/actors/backend.hpp"
#include "troupe/actors/list_gather.hpp"
#include "troupe/actors/session_letters.hpp"
#include "troupe/actors/tool_pool.hpp"

#include <fmt/format.h>

#include <condition_variable>
#include <mutex>

namespace troupe {

namespace {

using actors::as_inbox;
using detail::session_backend;

// Runs the form with a completion and blocks for what it gets.
template <class T, class Start>
result<T> wait_for(const Start& start) {
  if (detail::is_runtime_thread())
    return error(errc::would_deadlock,
                 "a blocking call on a thread of the runtime; use the form "
                 "with a completion, or co_await the _async form");
  const actors::tool_pool::lend lent;

  struct {
    std::mutex mutex;
    std::condition_variable came;
    std::optional<result<T>> answer;
  } waiting;

  start([&waiting](result<T> answer) {
    // Under the lock to the end: the waiter may go as soon as it is free.
    const std::lock_guard guard(waiting.mutex);
    waiting.answer.emplace(std::move(answer));
    waiting.came.notify_one();
  });
  std::unique_lock guard(waiting.mutex);
  waiting.came.wait(guard, [&waiting] { return waiting.answer.has_value(); });
  return std::move(*waiting.answer);
}

error closed() {
  return {errc::cancelled, "the runtime has shut down"};
}

error unknown(const session_key& key) {
  return {errc::not_found,
          fmt::format("session {} does not exist", to_string(key))};
}

// Counts the call, and takes it back if the runtime closed meanwhile: shutting
// down waits for what is counted.
bool enter(session_backend& backend) {
  backend.shared().calls.enter(0);
  if (!backend.is_closing())
    return true;
  backend.shared().calls.leave(0);
  return false;
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
  if (!enter(*backend_))
    return done(closed());
  (*wanted)->gate = &backend_->shared().calls;
  (*wanted)->created_done = std::move(done);
  const auto app = backend_->open_app((*wanted)->key.app);
  if (!app)
    return (*wanted)->fail(closed());
  as_inbox(app).tell(std::move(*wanted));
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
  if (!enter(*backend_))
    return done(closed());
  (*wanted)->gate = &backend_->shared().calls;
  (*wanted)->done = std::move(done);
  if (const auto app = backend_->find_app((*wanted)->key.app))
    as_inbox(app).tell(std::move(*wanted));
  else
    (*wanted)->fail(unknown((*wanted)->key));
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
  if (!enter(*backend_))
    return done(closed());
  auto wanted
    = std::make_unique<actors::list>(std::make_shared<actors::list_gather>(
      request.limit, std::move(from), std::move(done), backend_->shared()));
  wanted->only_user = std::move(user);
  // Without an app this was the last part already, and the page is empty.
  if (const auto app = backend_->find_app(*app_name))
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
  if (!enter(*backend_))
    return done(closed());
  (*wanted)->gate = &backend_->shared().calls;
  (*wanted)->done = std::move(done);
  if (const auto app = backend_->find_app(checked->app))
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
  if (!enter(*backend_))
    return done(closed());
  auto wanted = std::make_unique<actors::remove_user>();
  wanted->user = std::move(*user_name);
  wanted->gate = &backend_->shared().calls;
  wanted->done = std::move(done);
  if (const auto known = backend_->find_app(*app_name))
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
  if (!enter(*backend_))
    return done(closed());
  auto wanted = std::make_unique<actors::read_state>();
  wanted->user = std::move(*user_name);
  wanted->gate = &backend_->shared().calls;
  wanted->done = std::move(done);
  if (const auto known = backend_->find_app(*app_name))
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
  if (!enter(*backend_))
    return done(closed());
  auto wanted = std::make_unique<actors::read_state>();
  wanted->gate = &backend_->shared().calls;
  wanted->done = std::move(done);
  if (const auto known = backend_->find_app(*app_name))
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
