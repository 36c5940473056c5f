// Moves what the log says into the tables that are looked up: `state`,
// the entries, and the revisions in `scopes`.
//
// In sorted batches, because the random pages of those tables, written row by
// row, would cost a commit several times what the log does.

#pragma once

#include "troupe/stores/log_tail.hpp"
#include "troupe/stores/sqlite_database.hpp"
#include "troupe/stores/sqlite_entries.hpp"

#include <vector>

namespace troupe {

/// Works inside the write transactions of others, a slice at a time.
///
/// Any number of processes may fold one file at the same time, each slice by
/// slice. A slice takes a run of log rows of one scope, writes what they come
/// to, and sets the scope's revision to that of the last of them, in one
/// transaction. So it always holds that a scope's tables are what its rows up
/// to its revision come to. A slice takes up only what is beyond the scope's
/// revision: the rest another process has written. Nobody depends on who
/// folded: `folded` is raised to a row only by a transaction that knows every
/// row up to it, after it has visited all of their scopes, and never lowered.
class sqlite_fold {
public:
  sqlite_fold(const sqlite_database& database,
              log_tail& tail,
              std::int64_t batch_rows);

  /// Does a share of the work that is due, as large as suits a transaction that
  /// commits `rows`. `folded` is what the file says. Returns the row up to
  /// which all is folded now, once the transaction is committed.
  std::int64_t work(std::int64_t rows, std::int64_t folded);

  /// Moves some of the fresh entries, if that is due: processes that end soon
  /// would never come to it.
  void settle_at_end(std::int64_t folded) { entries_.settle_at_end(folded); }

  /// Does all of it.
  std::int64_t work_all(std::int64_t folded);

private:
  void start_batch();
  void fold_next(std::int64_t folded);
  std::int64_t write_state(std::int64_t scope_id, scope where);
  void write_entries(std::int64_t scope_id, scope where);
  bool skip_written(std::int64_t scope_id);
  std::int64_t finish_batch();

  log_tail& tail_; // The store's, which outlives this.
  std::int64_t batch_rows_;
  std::int64_t until_ = 0;              // Of the batch: its last row.
  std::vector<log_tail::scope_id> due_; // Sorted; empty between batches.
  std::size_t next_due_ = 0;
  std::int64_t behind_ = 0; // In the scope that is next: where its run starts.
  std::int64_t credit_ = 0;
  std::vector<pending_change> run_;
  std::vector<const operation*> operations_;
  std::string text_;
  sqlite_entries entries_;
  sqlite_statement raise_revision_;
  sqlite_statement find_revision_;
  sqlite_statement change_;
  sqlite_statement add_;
  sqlite_statement erase_;
  sqlite_statement raise_folded_;
};

} // namespace troupe
