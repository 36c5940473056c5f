// The rows of the log that are not folded yet, indexed in memory.
//
// What is folded can be looked up in the file; what is not, here. Safe from any
// thread; one thread at a time adds and drops.

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

/// By `scope`: session, user, app.
inline constexpr std::size_t durable_scopes = 3;

/// One row of the log, without its body.
struct log_row {
  std::int64_t number = 0;
  change_kind kind = change_kind::append;
  /// Ids of the scopes that the row touches, 0 where it touches none.
  std::array<std::int64_t, durable_scopes> scopes{};
  /// The revision that each of those has after it.
  std::array<std::int64_t, durable_scopes> revisions{};
  std::int64_t microseconds = 0;
  std::optional<std::int64_t> id_hash; ///< Of an event's id.
  /// The change, or, until somebody asks for it, the text of its delta.
  event_ptr said;
  std::string delta;
};

/// What one row does to one scope.
struct pending_change {
  std::int64_t row = 0;
  std::int64_t revision = 0;
  std::int64_t microseconds = 0;
  std::optional<std::int64_t> id_hash;
  bool has_session = false;
  event_ptr said; ///< Null: the row changes no key.
};

class log_tail {
public:
  /// Keeps what is dropped meanwhile for one reader. Taken before the reader's
  /// transaction begins, so that each row is either folded in what it reads, or
  /// still here.
  class hold {
  public:
    explicit hold(log_tail& tail);
    hold(const hold&) = delete;
    hold& operator=(const hold&) = delete;
    ~hold();

  private:
    log_tail& tail_; // The store's, which outlives its readers.
    std::multiset<std::uint64_t>::iterator ticket_;
  };

  /// Starts anew behind the row `folded`.
  void reset(std::int64_t folded);

  /// Takes the next rows. Row numbers only grow.
  void add(std::span<log_row> added);

  /// The rows up to `number` are known, also those that are not here.
  void reach(std::int64_t number);

  /// The number of the newest row, whether it is still here or not.
  std::int64_t last() const;

  /// The newest revision of a scope, if a row here touches it.
  std::optional<std::int64_t> newest(std::int64_t id) const;

  struct scope_id {
    std::int64_t id;
    scope where;
  };

  /// The scopes that rows up to `until` touch, sorted by id.
  std::vector<scope_id> scopes(std::int64_t until) const;

  /// What is done to a scope, oldest first: behind the revision `above` and the
  /// row `behind`, up to the row `until`, at most `limit`. Throws
  /// `errc::corrupt`.
  void collect(std::int64_t id,
               std::int64_t above,
               std::int64_t behind,
               std::int64_t until,
               std::size_t limit,
               std::vector<pending_change>& found);

  struct session_rows {
    std::int64_t id;
    std::int64_t first;  ///< The oldest row that touches it.
    std::int64_t newest; ///< The newest time, in microseconds.
  };

  /// Each session that rows up to `until` touch.
  std::vector<session_rows> sessions(std::int64_t until) const;

  /// The rows up to `until` are folded, so they may go.
  void mark_folded(std::int64_t until);

  /// Lets go of at most `limit` rows that are folded and no reader needs.
  void trim(std::size_t limit);

private:
  struct entry {
    log_row row;
    // The next row that touches the same scope; 0 at the end.
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
  std::deque<entry> rows_; // Without gaps: row `first_` is the first.
  std::int64_t first_ = 1;
  std::int64_t folded_ = 0;
  std::unordered_map<std::int64_t, chain> chains_; // By scope id.
  std::deque<drop> drops_;
  std::multiset<std::uint64_t> tickets_; // Of the readers at work.
  std::uint64_t next_ticket_ = 0;
};

} // namespace troupe
