// The positions of each session's events in the log: the tables
// `settled_entries` and `fresh_entries`, which are read as one.
//
// A batch of changes to many sessions holds a few events of each. With a single
// table it would write one page per session. It writes to a small table
// instead, whose rows move to the large one from time to time.
//
// The table `shared_entries` has the positions of the changes of apps and
// users, for reads of their state as it was. Each of its rows has all positions
// of one run.

#pragma once

#include "troupe/stores/shared/log_tail.hpp"
#include "troupe/stores/sqlite/database.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// Positions in the log of successive changes of one app or user.
struct shared_entry {
  std::int64_t revision = 0; ///< The scope's, after the last of the changes.
  std::vector<std::int64_t> logs; ///< `log.id` of each change; never empty.

  /// The scope's revision before the first of the changes.
  std::int64_t base() const noexcept { return revision - std::ssize(logs); }
};

/// Reads the column `logs`, a JSON list of the first position and of the
/// distances to the next ones. Throws `errc::corrupt`.
std::vector<std::int64_t> decode_logs(std::string_view text);

/// Works inside write transactions of its callers.
///
/// Any number of processes may move rows of the small table at the same time.
/// Each moves slices; an entry is in exactly one of the two tables after each
/// slice.
class sqlite_entries {
public:
  /// Moves the small table after every `settle_rows` rows of the log.
  sqlite_entries(const sqlite_database& database, std::int64_t settle_rows);

  /// Adds the rows of a run. None of them has an entry yet, unless the scope
  /// was removed; an entry of a removed scope may be in both tables.
  void add(std::int64_t scope_id, std::span<const pending_change> rows);

  /// Adds a run of changes of an app or a user.
  void add_shared(std::int64_t scope_id, std::span<const pending_change> run);

  /// Moves a part of the fresh entries, if that is due. The part fits a
  /// transaction that commits `rows` rows.
  void settle(std::int64_t rows, std::int64_t folded);

  /// Moves a larger part, if that is due. Call it in the last transaction.
  void settle_at_end(std::int64_t folded);

private:
  void start_pass(std::int64_t folded);
  void move_slice();

  std::int64_t settle_rows_;
  std::int64_t slice_entries_;
  std::string logs_;
  std::int64_t credit_ = 0;
  std::optional<std::int64_t> settled_; // As read from the file.
  std::int64_t until_
    = 0; // Last folded row of the current pass; 0 between passes.
  // Position of the pass: entries up to this scope and number are moved.
  std::int64_t behind_scope_ = 0;
  std::int64_t behind_number_ = 0;
  sqlite_statement add_;
  sqlite_statement add_fresh_;
  sqlite_statement add_shared_;
  sqlite_statement find_settled_;
  sqlite_statement raise_settled_;
  sqlite_statement find_slice_;
  sqlite_statement copy_slice_;
  sqlite_statement erase_slice_;
};

} // namespace troupe
