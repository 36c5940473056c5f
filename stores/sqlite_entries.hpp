// Where the events of each session lie in the log: the tables
// `settled_entries` and `fresh_entries`, which are read as one.
//
// A batch of changes to many sessions has a few events of each, so in one table
// of all events it would write a page per session. It writes them to a small
// table instead, which moves to the large one now and then.

#pragma once

#include "troupe/stores/log_tail.hpp"
#include "troupe/stores/sqlite_database.hpp"

#include <span>

namespace troupe {

/// Works inside the write transactions of others.
///
/// Any number of processes may move the small table at the same time, each
/// slice by slice: an entry is in exactly one of the two after each.
class sqlite_entries {
public:
  /// Moves the small table after `settle_rows` rows of the log.
  sqlite_entries(const sqlite_database& database, std::int64_t settle_rows);

  /// Adds the rows of a run. None of them is there yet, unless their scope has
  /// been removed: of that an entry may be in both tables.
  void add(std::int64_t scope_id, std::span<const pending_change> rows);

  /// Moves as much as suits a transaction that commits `rows`, if it is due.
  void settle(std::int64_t rows, std::int64_t folded);

  /// Moves some, if it is due, when there is no other transaction to come.
  void settle_at_end(std::int64_t folded);

private:
  void start_pass(std::int64_t folded);
  void move_slice();

  std::int64_t settle_rows_;
  std::int64_t slice_entries_;
  std::int64_t credit_ = 0;
  std::optional<std::int64_t> settled_; // As the file says.
  std::int64_t until_ = 0;              // Of the pass; 0 when there is none.
  // Entries up to this scope and number are moved.
  std::int64_t behind_scope_ = 0;
  std::int64_t behind_number_ = 0;
  sqlite_statement add_;
  sqlite_statement add_fresh_;
  sqlite_statement find_settled_;
  sqlite_statement raise_settled_;
  sqlite_statement find_slice_;
  sqlite_statement copy_slice_;
  sqlite_statement erase_slice_;
};

} // namespace troupe
