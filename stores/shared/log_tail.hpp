// An in-memory index of the log rows that are not folded yet.
//
// The tables of the file answer for folded rows; this index answers for the
// others. All members are safe from any thread. One thread at a time calls
// `reset`, `add`, `reach`, `mark_folded` and `trim`.

#pragma once

#include "troupe/stores/store.hpp"

#include <array>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace troupe {

/// Number of scopes that are stored. Arrays of this size are indexed by
/// `scope`: session, user, app.
inline constexpr std::size_t durable_scopes = 3;

/// One row of the log, without its body.
struct log_row {
  std::int64_t number = 0;
  change_kind kind = change_kind::append;
  /// Ids of the scopes that the row touches; 0 for a scope that it does not
  /// touch.
  std::array<std::int64_t, durable_scopes> scopes{};
  /// The revision of each touched scope after the row.
  std::array<std::int64_t, durable_scopes> revisions{};
  std::int64_t microseconds = 0;
  std::optional<std::int64_t> id_hash; ///< Hash of the event's id.
  /// The change. Null until it is first needed; until then `delta` holds the
  /// text of its delta.
  event_ptr event;
  std::string delta;
};

/// The effect of one row on one scope.
struct pending_change {
  std::int64_t row = 0;
  std::int64_t revision = 0;
  std::int64_t microseconds = 0;
  std::optional<std::int64_t> id_hash;
  bool has_session = false;
  event_ptr event; ///< Null if the row changes no key.
};

class log_tail {
public:
  /// Keeps rows for one reader even if they are folded meanwhile. Take it
  /// before the reader's transaction begins. Otherwise a row could be folded
  /// too late for the transaction and be dropped before the reader looks here.
  class hold {
  public:
    explicit hold(log_tail& tail);
    hold(const hold&) = delete;
    hold& operator=(const hold&) = delete;
    ~hold();

  private:
    log_tail& tail_; // Belongs to the store, which outlives its readers.
    std::multiset<std::uint64_t>::iterator ticket_;
  };

  /// Clears the index. The next row comes after the row `folded`.
  void reset(std::int64_t folded);

  /// Adds the next rows. Row numbers only grow.
  void add(std::span<log_row> added);

  /// Declares all rows up to `number` as known, including those that were never
  /// added.
  void reach(std::int64_t number);

  /// Returns the number of the newest known row, even if the row was dropped.
  std::int64_t last() const;

  /// Returns the newest revision of a scope, if a row of the index touches it.
  std::optional<std::int64_t> newest(std::int64_t id) const;

  struct scope_id {
    std::int64_t id;
    scope where;
  };

  /// Lists the scopes that rows up to `until` touch, sorted by id.
  std::vector<scope_id> scopes(std::int64_t until) const;

  /// Appends the changes of a scope to `found`, oldest first: those with a
  /// revision above `above`, after the row `behind`, up to the row `until`, at
  /// most `limit`. Throws `errc::corrupt` if a delta cannot be read.
  void collect(std::int64_t id,
               std::int64_t above,
               std::int64_t behind,
               std::int64_t until,
               std::size_t limit,
               std::vector<pending_change>& found);

  struct session_rows {
    std::int64_t id;
    std::int64_t first;  ///< Number of the oldest row that touches it.
    std::int64_t newest; ///< The newest time, in microseconds since 1970.
  };

  /// Lists the sessions that rows up to `until` touch.
  std::vector<session_rows> sessions(std::int64_t until) const;

  /// Declares the rows up to `until` as folded; `trim` may drop them.
  void mark_folded(std::int64_t until);

  /// Drops at most `limit` rows that are folded and that no reader needs.
  void trim(std::size_t limit);

private:
  struct entry {
    log_row row;
    // Number of the next row that touches the same scope; 0 for none.
    std::array<std::int64_t, durable_scopes> next{};
  };

  struct chain {
    std::int64_t first = 0;
    std::int64_t last = 0;
    scope where = scope::session;
  };

  struct drop {
    std::int64_t until;
    std::uint64_t ticket;
  };

  entry& at(std::int64_t number) {
    return rows_[static_cast<std::size_t>(number - first_)];
  }

  const entry& at(std::int64_t number) const {
    return rows_[static_cast<std::size_t>(number - first_)];
  }

  void add_row(log_row added);
  void pop_front();

  mutable std::mutex mutex_;
  std::deque<entry> rows_; // Without gaps; `first_` is the number of the first.
  std::int64_t first_ = 1;
  std::int64_t folded_ = 0;
  std::unordered_map<std::int64_t, chain> chains_; // Indexed by scope id.
  std::deque<drop> drops_;
  std::multiset<std::uint64_t> tickets_; // Tickets of the readers at work.
  std::uint64_t next_ticket_ = 0;
};

} // namespace troupe
