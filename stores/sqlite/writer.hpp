// The only connection of a process that writes to the file.
//
// Any number of processes write to one file. A commit holds SQLite's write lock
// while it reads the rows that other processes have appended, compares
// revisions, appends its own rows and does its part of folding.

#pragma once

#include "troupe/stores/shared/foreign_changes.hpp"
#include "troupe/stores/shared/hot_states.hpp"
#include "troupe/stores/shared/known_commits.hpp"
#include "troupe/stores/sqlite/fold.hpp"
#include "troupe/stores/sqlite/log.hpp"
#include "troupe/stores/sqlite/log_bound.hpp"
#include "troupe/stores/sqlite/pasts.hpp"
#include "troupe/stores/sqlite/purge.hpp"
#include "troupe/stores/sqlite/runs.hpp"
#include "troupe/stores/sqlite/scopes.hpp"
#include "troupe/stores/sqlite/watch.hpp"

#include <functional>
#include <set>
#include <span>
#include <string>

namespace troupe {

/// State that the writer and the readers of one store share. It outlives the
/// writer, which is made anew after every failure.
struct sqlite_shared {
  sqlite_settings settings;
  log_tail tail;
  foreign_changes foreign; ///< Used only by the writer.
  /// True once `tail` holds every row that is not folded.
  bool is_filled = false;
  known_commits marks; ///< Used only by the writer, except `newest`.
  sqlite_known_file file;
  /// Ids of this process as a holder of runs. Used only by the writer.
  std::set<std::string, std::less<>> holders = {};
  hot_states hot = {};
};

/// Throws `sqlite_history_lost` if a file is known and the path does not lead
/// to it. Call it before a connection is opened: SQLite would apply a
/// write-ahead log of the known file to the file in its place.
sqlite_shared& expect_known_file(sqlite_shared& shared);

/// Throws `sqlite_history_lost` unless the log has the commit `known`.
void expect_known_commit(sqlite_log& log,
                         const std::optional<known_commits::commit>& known);

/// Reads the rows that are not folded into the empty `tail`.
void fill_tail(log_tail& tail, sqlite_log& log, std::int64_t folded);

/// Writes commits. Its members throw `troupe::error`; the content of the file
/// is then unknown and the writer must be replaced. They throw
/// `sqlite_history_lost` before they report anything that the file no longer
/// holds.
class sqlite_writer {
public:
  /// Creates the file if it is missing.
  explicit sqlite_writer(sqlite_shared& shared);

  commit_outcome commit(std::span<const store_change> changes);

  std::vector<moved_owner> changed_elsewhere();

  /// Reads the rows of other processes, for the next call that reports them.
  void follow();

  /// Implements `store::renew_holder`.
  void renew_holder(const std::string& id);

  /// Implements `store::remove_holder`.
  void remove_holder(const std::string& id);

  /// Forgets the commits of this process that the file no longer holds, and
  /// returns their number.
  std::size_t forget_lost_commits();

  /// Folds everything and copies it from the write-ahead log into the file.
  void finish();

  /// Throws `sqlite_history_lost` if the path leads to another file.
  void check_file() { watch_->check_file(); }

  /// Number of frames in the write-ahead log after the last commit.
  int log_frames() const noexcept { return log_frames_; }

  /// Makes the write-ahead log restart if it has reached `bound`.
  void make_room(sqlite_log_bound& bound) {
    if (bound.is_reached())
      bound.make_room(database_);
  }

  /// Copies as many frames as possible from the write-ahead log. The log
  /// restarts if all are copied and no connection reads from it.
  void checkpoint();

private:
  void wait_for_disk(bool waits);
  bool closes_own_runs(const store_change& change) const;
  void encode_all(std::span<const store_change> changes);
  bool catch_up();
  void read_foreign();
  void expect_known_history(std::int64_t newest);

  std::vector<kept_out_run>
  find_kept_out(std::span<const store_change> changes);
  void judge(const store_change& change, const stored_event& text);
  void judge_removal(const store_change& change);
  void judge_user_removal(const store_change& change);
  known_scope* judge_session(const store_change& change);
  void judge_past(const store_change& change);
  void judge_trim(const store_change& change, const stored_event& text);
  void close_runs(const store_change& change);
  known_scope* judge_wider(const owner_view& owner, std::uint64_t revision);
  void add_moved(const owner_view& owner);

  // Returns false once the commit is refused.
  bool may_write() const noexcept {
    return moved_.empty() && kept_out_.empty();
  }

  void write(const store_change& change,
             const stored_event& text,
             const std::array<known_scope*, durable_scopes>& touched);
  void write_past(const store_change& change,
                  const stored_event& text,
                  std::int64_t fork);
  void write_trim(std::int64_t scope_id,
                  std::int64_t revision,
                  const stored_event& text);
  void write_removal(change_kind kind, const owner_view& owner);
  void drop(std::int64_t scope_id, std::int64_t row);
  std::int64_t drop_one(std::int64_t scope_id, std::int64_t row);
  void insert_missing(const store_change& change, const owner_view& owner);

  std::int64_t take_number() { return ++newest_; }

  sqlite_shared& shared_; // Belongs to the store, which outlives this.
  sqlite_database database_;
  sqlite_log log_;
  sqlite_scopes scopes_;
  sqlite_pasts pasts_;
  sqlite_fold fold_;
  sqlite_purge purge_;
  sqlite_runs runs_;
  sqlite_statement add_removal_;
  sqlite_statement removals_behind_;
  sqlite_statement data_version_;
  std::optional<std::int64_t> seen_version_;
  // False while commits of a durable store do not wait for the disk.
  bool waits_for_disk_ = true;
  std::int64_t folded_ = 0;
  int log_frames_ = 0;
  sqlite_log_space log_space_;
  std::optional<sqlite_watch> watch_; // Set once the file has been read.

  // State of the running commit.
  std::vector<stored_event> texts_;
  std::vector<log_row> written_;
  std::vector<owner_name> moved_;
  std::vector<kept_out_run> kept_out_;
  std::int64_t newest_ = 0; // Last log row that was assigned.
};

} // namespace troupe
