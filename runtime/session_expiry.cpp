// Removes the sessions that have not been updated for long.

#include "troupe/actors/sessions/list_gather.hpp"
#include "troupe/actors/stepwise_call.hpp"
#include "troupe/runtime/session_service.hpp"

#include <chrono>
#include <utility>

namespace troupe {

namespace {

constexpr std::size_t page_length = 1'000;

// A list shows the newest update first, so this place skips all newer sessions.
std::string behind_newer(timestamp before) {
  return actors::make_cursor(
    actors::page_start{before - timestamp::duration(1), {}, {}});
}

// A session that was updated since it was listed stays, as does a new one of
// its key. The store of several processes compares the revision.
task<result<bool>>
remove_listed(session_service sessions, session listed, timestamp before) {
  auto removed = co_await sessions.remove(
    listed.key(),
    {.expected_revision = listed.revision(), .updated_before = before});
  if (!removed && removed.error().code() == errc::conflict)
    co_return false;
  co_return removed;
}

task<result<std::uint64_t>> remove_all(session_service sessions,
                                       expiry_request wanted) {
  if (wanted.before <= timestamp())
    co_return error(errc::invalid_argument,
                    "an expiry needs a time; sessions without an update since "
                    "then are removed");
  list_request request(std::move(wanted.app),
                       std::move(wanted.user),
                       page_length,
                       behind_newer(wanted.before));
  std::uint64_t count = 0;
  do {
    const auto page = co_await sessions.list(request);
    if (!page)
      co_return page.error();
    for (const auto& listed : page->sessions) {
      const auto removed
        = co_await remove_listed(sessions, listed, wanted.before);
      if (!removed)
        co_return removed.error();
      count += *removed ? 1 : 0;
    }
    request.cursor = page->next_cursor;
  } while (!request.cursor.empty());
  co_return count;
}

} // namespace

pending<std::uint64_t> session_service::expire(expiry_request request) {
  return actors::make_stepwise(
    remove_all(session_service(backend_), std::move(request)));
}

} // namespace troupe
