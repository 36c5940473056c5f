// The one connection of a process that writes, and what it knows of the file.
//
// A commit appends to the log and does its share of folding. Any number of
// processes write to one file: each looks at what the others have appended
// before it decides on anything, inside the transaction in which it writes.

#pragma once

#include "troupe/stores/foreign_changes.hpp"
#include "troupe/stores/sqlite_fold.hpp"
#include "troupe/stores/sqlite_log.hpp"
#include "troupe/stores/sqlite_log_bound.hpp"
#include "troupe/stores/sqlite_marks.hpp"
#include "troupe/stores/sqlite_purge.hpp"
#include "troupe/stores/sqlite_scopes.hpp"
#include "troupe/stores/sqlite_watch.hpp"

#include <span>

namespace troupe {

/// What the writers and the readers of one store share. It outlives a writer,
/// which is made again after every failure.
struct sqlite_shared {
  sqlite_settings settings;
  log_tail tail;
  foreign_changes foreign; ///< The writer's alone.
  /// Whether `tail` holds all that is not folded, once it has been filled.
  bool is_filled = false;
  sqlite_marks marks; ///< The writer's alone.
};

/// Reads the rows that are not folded into `tail`, which has none.
void fill_tail(log_tail& tail, sqlite_log& log, std::int64_t folded);

/// Throws `troupe::error`; then nobody knows what the file holds, and another
/// writer takes over. Throws `sqlite_history_lost` before anything is told that
/// the file does not hold any more.
class sqlite_writer {
public:
  /// Makes the file where it is missing.
  explicit sqlite_writer(sqlite_shared& shared);

  commit_outcome commit(std::span<const store_change> changes);

  std::vector<moved_owner> changed_elsewhere();

  /// How many commits of this process the file does not hold any more.
  std::size_t forget_lost_commits();

  /// Folds everything, moves it out of the write-ahead log.
  void finish();

  /// Frames in the write-ahead log after the last commit.
  int log_frames() const noexcept { return log_frames_; }

  /// Lets the write-ahead log start anew if it has reached `bound`.
  void make_room(sqlite_log_bound& bound) {
    if (bound.is_reached())
      bound.make_room(database_);
  }

  /// Moves what it can out of the write-ahead log, which starts anew if nobody
  /// reads from it.
  void checkpoint();

private:
  void encode_all(std::span<const store_change> changes);
  bool catch_up();
  void read_foreign();
  void expect_known_history(std::int64_t newest);

  void judge(const store_change& change, const stored_event& text);
  void judge_removal(const store_change& change);
  void judge_user_removal(const store_change& change);
  known_scope* judge_session(const store_change& change);
  known_scope* judge_wider(const owner_view& owner, std::uint64_t revision);
  void add_moved(const owner_view& owner);

  void write(const store_change& change,
             const stored_event& text,
             const std::array<known_scope*, durable_scopes>& touched);
  void write_removal(change_kind kind, const owner_view& owner);
  void insert_missing(const store_change& change, const owner_view& owner);

  std::int64_t take_number() { return ++newest_; }

  sqlite_shared& shared_; // The store's, which outlives this.
  sqlite_database database_;
  sqlite_log log_;
  sqlite_scopes scopes_;
  sqlite_fold fold_;
  sqlite_purge purge_;
  sqlite_statement add_removal_;
  sqlite_statement removals_behind_;
  sqlite_statement data_version_;
  std::optional<std::int64_t> seen_version_;
  std::int64_t folded_ = 0;
  int log_frames_ = 0;
  std::optional<sqlite_watch> watch_; // Once the file has been read.

  // Of the commit at work.
  std::vector<stored_event> texts_;
  std::vector<log_row> written_;
  std::vector<owner_name> moved_;
  std::int64_t newest_ = 0; // Row of the log.
};

} // namespace troupe
