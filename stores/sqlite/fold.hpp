// Copies the log into the tables that loads look up (`state`, the entries, and
// the revisions in `scopes`). This is called folding.
//
// Folding works in sorted batches. To write these tables row by row would touch
// random pages and make a commit several times as slow.

#pragma once

#include "troupe/stores/shared/log_tail.hpp"
#include "troupe/stores/sqlite/database.hpp"
#include "troupe/stores/sqlite/entries.hpp"
#include "troupe/stores/sqlite/snapshots.hpp"

#include <vector>

namespace troupe {

/// Works inside write transactions of its callers, one slice at a time.
///
/// Invariant: the tables of a scope equal the replay of its log rows up to the
/// revision in `scopes`. A slice takes a run of log rows of one scope, writes
/// their outcome, and sets the scope's revision to that of the last row, in one
/// transaction. It skips rows up to the stored revision, because another
/// process has folded them. So any number of processes may fold one file at the
/// same time.
///
/// `folded` never goes down. A transaction raises it to a row only if its
/// process knows every row up to that row and has visited all of their scopes.
/// So it does not matter which process folded a row.
class sqlite_fold {
public:
  sqlite_fold(const sqlite_database& database,
              log_tail& tail,
              std::int64_t batch_rows);

  /// Does a part of the work that is due. The part fits a transaction that
  /// commits `rows` rows. `folded` is the value in the file. Returns the new
  /// value, valid once the transaction is committed.
  std::int64_t work(std::int64_t rows, std::int64_t folded);

  /// Moves some of the fresh entries, if that is due. Without it, processes
  /// that end soon would never move any.
  void settle_at_end(std::int64_t folded) { entries_.settle_at_end(folded); }

  /// Folds everything. Returns as `work` does.
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
  std::int64_t until_ = 0; // Last row of the batch.
  std::vector<log_tail::scope_id>
    due_; // Scopes to visit, sorted; empty between batches.
  std::size_t next_due_ = 0;
  std::int64_t behind_ = 0; // Row after which the run of the next scope starts.
  std::int64_t credit_ = 0;
  std::vector<pending_change> run_;
  std::vector<const operation*> operations_;
  std::string text_;
  sqlite_entries entries_;
  sqlite_snapshots snapshots_;
  sqlite_statement raise_revision_;
  sqlite_statement find_revision_;
  sqlite_statement change_;
  sqlite_statement add_;
  sqlite_statement erase_;
  sqlite_statement raise_folded_;
};

} // namespace troupe
