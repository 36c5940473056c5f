// One `list` on its way: the sessions that it asks, the rows that they bring,
// and the page that is made of them in the end.

#pragma once

#include "troupe/core/session_request.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors {

struct setup;

/// Where a page starts, taken from a cursor; the place of a session.
struct page_start {
  timestamp time;
  std::string user;
  std::string id;
};

/// Fails with `errc::invalid_argument` on what no `list` gave out.
result<page_start> read_cursor(const std::string& cursor);

/// The cursor of the page behind `last`.
std::string make_cursor(const session& last);
std::string make_cursor(const page_start& last);

/// Thread-safe. Counts its parts: when the last is gone it makes the page and
/// hands it over, off the owners.
class list_gather : public std::enable_shared_from_this<list_gather> {
public:
  list_gather(std::size_t limit,
              std::optional<page_start> from,
              completion<session_page> done,
              setup& shared);

  void enter() noexcept { parts_.fetch_add(1, std::memory_order_relaxed); }

  void leave() noexcept;

  /// How many places the page wants to know: one more than it shows, which
  /// tells whether there is another page.
  std::size_t places_max() const noexcept {
    return limit_ + (limit_ < SIZE_MAX ? 1 : 0);
  }

  const std::optional<page_start>& from() const noexcept { return from_; }

  /// Takes the sessions of the page, in their order. Called once, by the app,
  /// before it sends any part on; read by all parts then.
  void choose(std::vector<page_start> places);

  /// The ids of the sessions of the page, by user.
  const std::map<std::string, std::vector<std::string>>&
  chosen() const noexcept {
    return chosen_;
  }

  /// Adds a row unless the page starts behind it.
  void add(session row);

  /// Makes the page; called once, by the job that the last part starts.
  void finish();

private:
  const std::size_t limit_;
  const std::optional<page_start> from_;
  std::map<std::string, std::vector<std::string>> chosen_;
  // The last place of the page, if there is another page.
  std::optional<page_start> last_;
  completion<session_page> done_;
  setup& shared_; // Outlives every call that it counts.
  std::atomic<std::size_t> parts_{0};
  std::mutex mutex_;
  std::vector<session> rows_;
};

} // namespace troupe::actors
