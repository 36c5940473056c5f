// Lists of apps and users by name.

#include "troupe/actors/backend.hpp"
#include "troupe/actors/failure.hpp"
#include "troupe/actors/owners/app.hpp"
#include "troupe/actors/owners/directory.hpp"
#include "troupe/actors/owners/session_letters.hpp"
#include "troupe/actors/owners/store_queue.hpp"
#include "troupe/actors/stepwise_call.hpp"
#include "troupe/runtime/session_service.hpp"

#include <cstdint>

namespace troupe {

namespace {

using backend_ptr = std::shared_ptr<detail::session_backend>;
using name_list = std::vector<std::string>;

// One more name than the page shows tells whether another page follows.
std::size_t asked_for(std::size_t limit) {
  return limit < SIZE_MAX ? limit + 1 : limit;
}

name_page make_page(name_list found, std::size_t limit) {
  name_page page{std::move(found), {}};
  if (page.names.size() > limit) {
    page.names.resize(limit);
    page.next_cursor = page.names.back();
  }
  return page;
}

completion<name_list> page_to(completion<name_page> done, std::size_t limit) {
  return [done = std::move(done), limit](result<name_list> found) {
    done(found ? result<name_page>(make_page(std::move(*found), limit))
               : found.error());
  };
}

std::optional<error> fault_of(std::size_t limit) {
  if (limit == 0)
    return error(errc::invalid_argument, "the limit of a list is 0");
  return std::nullopt;
}

// Reads names from the store.
void read_stored_names(actors::setup& shared,
                       completion<name_list> done,
                       std::function<result<name_list>(store&)> job) {
  auto wanted = std::make_unique<actors::answered<name_list>>();
  wanted->done = std::move(done);
  if (actors::admit_call(*wanted, shared))
    actors::read_then_complete<name_list>(
      shared, std::move(wanted), std::move(job));
}

void start_list_users(const backend_ptr& backend,
                      const user_list_request& request,
                      completion<name_page> done) {
  auto app = check_id(request.app, "app");
  if (!app)
    return done(app.error());
  if (const auto fault = fault_of(request.limit))
    return done(*fault);
  auto& shared = backend->shared();
  const auto limit = asked_for(request.limit);
  auto listed = page_to(std::move(done), request.limit);
  if (shared.store)
    return read_stored_names(
      shared,
      std::move(listed),
      [query = user_query{std::move(*app), limit, request.cursor}](
        store& kept) { return kept.list_users(query); });
  auto wanted = std::make_unique<actors::list_users>();
  wanted->limit = limit;
  wanted->behind = request.cursor;
  wanted->done = std::move(listed);
  if (!admit_call(*wanted, shared))
    return;
  if (const auto known = shared.apps->find(*app))
    known->tell(std::move(wanted));
  else
    wanted->complete();
}

// An app without users and keys stays in memory until the runtime ends.
task<result<bool>> is_in_use(session_service sessions, std::string app) {
  const auto users = co_await sessions.list_users({app, 1});
  if (!users)
    co_return users.error();
  if (!users->names.empty())
    co_return true;
  const auto keys = co_await sessions.app_state(app);
  if (!keys)
    co_return keys.error();
  co_return !keys->empty();
}

task<result<name_page>> list_live_apps(backend_ptr backend,
                                       app_list_request request) {
  const session_service sessions(backend);
  const auto limit = asked_for(request.limit);
  auto behind = request.cursor;
  name_list found;
  while (found.size() < limit) {
    if (backend->is_closing())
      co_return actors::closed();
    const auto known = backend->shared().apps->names(behind, limit);
    for (const auto& app : known) {
      const auto used = co_await is_in_use(sessions, app);
      if (!used)
        co_return used.error();
      if (*used && found.size() < limit)
        found.push_back(app);
    }
    if (known.size() < limit)
      break;
    behind = known.back();
  }
  co_return make_page(std::move(found), request.limit);
}

void start_list_apps(const backend_ptr& backend,
                     const app_list_request& request,
                     completion<name_page> done) {
  read_stored_names(
    backend->shared(),
    page_to(std::move(done), request.limit),
    [query = app_query{asked_for(request.limit), request.cursor}](store& kept) {
      return kept.list_apps(query);
    });
}

} // namespace

pending<name_page> session_service::list_apps(app_list_request request) {
  if (backend_->shared().store == nullptr && request.limit > 0)
    return actors::make_stepwise(list_live_apps(backend_, std::move(request)));
  return actors::make_pending<name_page>(
    backend_->shared(),
    [backend = backend_,
     request = std::move(request)](completion<name_page> done) {
      if (const auto fault = fault_of(request.limit))
        return done(*fault);
      start_list_apps(backend, request, std::move(done));
    });
}

pending<name_page> session_service::list_users(user_list_request request) {
  return actors::make_pending<name_page>(
    backend_->shared(),
    [backend = backend_,
     request = std::move(request)](completion<name_page> done) {
      start_list_users(backend, request, std::move(done));
    });
}

} // namespace troupe
