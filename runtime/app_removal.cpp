// Removes an app with all that belongs to it.
//
// Invariant: `list_apps` names the app until its users and keys are gone. Its
// artifacts go last, so a second call finds all that the first one has left.

#include "troupe/actors/backend.hpp"
#include "troupe/actors/failure.hpp"
#include "troupe/actors/stepwise_call.hpp"
#include "troupe/contexts/lanes/artifact_service.hpp"
#include "troupe/runtime/session_service.hpp"

namespace troupe {

namespace {

using backend_ptr = std::shared_ptr<detail::session_backend>;

// User of the session whose events erase the app's keys.
constexpr auto removing_user = "app-removal";
// Keys that one event erases, so that its size stays far below the limit.
constexpr std::size_t erased_at_once = 256;

task<result<bool>> remove_users(session_service sessions, std::string app) {
  bool found = false;
  user_list_request request(app);
  do {
    const auto page = co_await sessions.list_users(request);
    if (!page)
      co_return page.error();
    for (const auto& user : page->names) {
      const auto removed = co_await sessions.remove_user(app, user);
      if (!removed)
        co_return removed.error();
      found = found || *removed;
    }
    request.cursor = page->next_cursor;
  } while (!request.cursor.empty());
  co_return found;
}

// Makes the events that erase these keys.
result<std::vector<event>> make_erasures(const json& keys) {
  std::vector<event> made;
  std::size_t count = 0;
  for (const auto& [name, held] : keys.items()) {
    if (count++ % erased_at_once == 0)
      made.emplace_back().author = "system";
    auto recorded = made.back().actions.state_delta.record(
      join_key(scope::app, name), operation_kind::erase);
    if (!recorded)
      return recorded.error();
  }
  return made;
}

// The app is the only writer of its keys, and takes changes from events.
task<result<bool>> erase_keys(session_service sessions, std::string app) {
  const auto keys = co_await sessions.app_state(app);
  if (!keys)
    co_return keys.error();
  if (keys->empty())
    co_return false;
  auto erasures = make_erasures(*keys);
  if (!erasures)
    co_return erasures.error();
  create_request wanted(app, removing_user);
  const auto made = co_await sessions.create(std::move(wanted));
  if (!made)
    co_return made.error();
  for (auto& each : *erasures) {
    const auto erased
      = co_await sessions.append_event(made->key(), std::move(each));
    if (!erased)
      co_return erased.error();
  }
  co_return co_await sessions.remove_user(app, removing_user);
}

pending<bool> remove_artifacts(const backend_ptr& backend,
                               const std::string& app) {
  return actors::make_pending<bool>(
    backend->shared(), [backend, app](completion<bool> done) {
      const auto& shared = backend->share();
      if (!shared->artifacts)
        return done(true);
      // The work may outlive the backend, whose end waits for this count.
      shared->calls.enter(0);
      const bool is_posted
        = !shared->closing && shared->artifacts->post([shared, app, done] {
            const auto gone = shared->artifacts->store->remove_app(app);
            done(gone ? result<bool>(true) : result<bool>(gone.error()));
            shared->calls.leave(0);
          });
      if (!is_posted) {
        shared->calls.leave(0);
        done(actors::closed());
      }
    });
}

task<result<bool>> remove_all(backend_ptr backend, std::string app) {
  const auto name = check_id(app, "app");
  if (!name)
    co_return name.error();
  const session_service sessions(backend);
  const auto users = co_await remove_users(sessions, *name);
  if (!users)
    co_return users.error();
  const auto keys = co_await erase_keys(sessions, *name);
  if (!keys)
    co_return keys.error();
  const auto artifacts = co_await remove_artifacts(backend, *name);
  if (!artifacts)
    co_return artifacts.error();
  co_return *users || *keys;
}

} // namespace

pending<bool> session_service::remove_app(std::string app) {
  return actors::make_stepwise(remove_all(backend_, std::move(app)));
}

} // namespace troupe
