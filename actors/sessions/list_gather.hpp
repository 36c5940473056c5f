// One `list` call under way: collects a row from each session that it asks, and
// makes the page.

#pragma once

#include "troupe/actors/engine/lent_thread.hpp"
#include "troupe/contexts/pending.hpp"
#include "troupe/core/session.hpp"

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

/// A position in a list: the session after which a page starts.
struct page_start {
  timestamp time;
  std::string user;
  std::string id;
};

/// Parses a cursor. Fails with `errc::invalid_argument` if `list` did not
/// make it.
result<page_start> read_cursor(const std::string& cursor);

/// The cursor of the page that starts after `last`.
std::string make_cursor(const session& last);
std::string make_cursor(const page_start& last);

/// Counts its parts (`list` letters). When the last part is destroyed, a job
/// makes the page and completes the call. Thread-safe.
class list_gather : public std::enable_shared_from_this<list_gather> {
public:
  list_gather(std::size_t limit,
              std::optional<page_start> from,
              completion<session_page> done,
              setup& shared);

  void add_part() noexcept { parts_.fetch_add(1, std::memory_order_relaxed); }

  void end_part() noexcept;

  /// Number of positions to look up: one more than the page shows, to know
  /// whether another page follows.
  std::size_t places_max() const noexcept {
    return limit_ + (limit_ < SIZE_MAX ? 1 : 0);
  }

  const std::optional<page_start>& from() const noexcept { return from_; }

  /// Sets the sessions of the page, in order. Called once, by the app, before
  /// it sends the parts; the parts only read them.
  void choose(std::vector<page_start> places);

  /// Ids of the page's sessions, by user.
  const std::map<std::string, std::vector<std::string>>&
  chosen() const noexcept {
    return chosen_;
  }

  /// Adds a row, unless it belongs to an earlier page by now.
  void add(session row);

  /// Makes the page and completes the call. Called once, by the job of the
  /// last part.
  void finish();

private:
  const std::size_t limit_;
  const std::optional<page_start> from_;
  std::map<std::string, std::vector<std::string>> chosen_;
  // The last position of this page, if another page follows.
  std::optional<page_start> last_;
  completion<session_page> done_;
  setup& shared_; // Outlives every call that it counts.
  // As in `call`: the page goes to a blocked thread, at once.
  const bool is_of_blocked_thread_ = lent_thread::is_starting();
  std::atomic<std::size_t> parts_{0};
  std::mutex mutex_;
  std::vector<session> rows_;
};

} // namespace troupe::actors
