// Removes an app with all that belongs to it.
//
// Invariant: `list_apps` names the app until its users and keys are gone. Its
// memory goes before them. Its artifacts, and memory that was added meanwhile,
// go last, so a second call finds all that the first one has left.

#include "troupe/actors/artifact_call.hpp"
#include "troupe/actors/backend.hpp"
#include "troupe/actors/owners/session_letters.hpp"
#include "troupe/actors/stepwise_call.hpp"
#include "troupe/runtime/session_service.hpp"

namespace troupe {

namespace {

using backend_ptr = std::shared_ptr<detail::session_backend>;

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

pending<shared_write> erase_app_keys(const backend_ptr& backend,
                                     const std::string& app) {
  return actors::make_pending<shared_write>(
    backend->shared(), [backend, app](completion<shared_write> done) {
      actors::clear_state_of(backend->shared(), app, std::move(done));
    });
}

pending<bool> remove_artifacts(const backend_ptr& backend,
                               const std::string& app) {
  return actors::make_artifact_call<bool>(
    backend->share(), [app](artifact_store& kept) -> result<bool> {
      const auto gone = kept.remove_app(app);
      return gone ? result<bool>(true) : gone.error();
    });
}

// Also of users that are not listed, since memory needs no session.
pending<bool> remove_memory_of(const backend_ptr& backend,
                               const std::string& app) {
  return actors::make_memory_call<bool>(
    backend->share(),
    [app](memory_service& kept) { return kept.remove_app(app); });
}

task<result<bool>> remove_all(backend_ptr backend, std::string app) {
  const auto name = check_id(app, "app");
  if (!name)
    co_return name.error();
  session_service sessions(backend);
  const bool has_memory = backend->shared().memory != nullptr;
  bool remembered = false;
  if (has_memory) {
    const auto gone = co_await remove_memory_of(backend, *name);
    if (!gone)
      co_return gone.error();
    remembered = *gone;
  }
  const auto users = co_await remove_users(sessions, *name);
  if (!users)
    co_return users.error();
  const auto keys = co_await sessions.app_state(*name);
  if (!keys)
    co_return keys.error();
  // Also without keys: ids of writes may be remembered.
  const auto erased = co_await erase_app_keys(backend, *name);
  if (!erased)
    co_return erased.error();
  if (backend->shared().artifacts)
    if (const auto gone = co_await remove_artifacts(backend, *name); !gone)
      co_return gone.error();
  if (has_memory)
    if (const auto gone = co_await remove_memory_of(backend, *name); !gone)
      co_return gone.error();
  co_return *users || !keys->empty() || remembered;
}

} // namespace

pending<bool> session_service::remove_app(std::string app) {
  return actors::make_stepwise(remove_all(backend_, std::move(app)));
}

} // namespace troupe
