// Marks of commits. By them a process recognizes that the database has another
// history than the one it knows: a server that lost its last commits, a replica
// that took over too early, or a restored backup.
//
// Invariant: a mark becomes known only after everything that this process holds
// up to its commit was read or confirmed. So if the database has all known
// marks, it has everything that this process holds.

#pragma once

#include "troupe/stores/postgres/connection.hpp"
#include "troupe/stores/store.hpp"

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <random>
#include <string_view>
#include <vector>

namespace troupe {

/// One row of the table `marks`. The number grows by one with each commit; the
/// stamp is random.
struct commit_mark {
  std::int64_t number = 0;
  std::int64_t stamp = 0;

  friend bool operator==(const commit_mark&, const commit_mark&) = default;
};

class postgres_history {
public:
  using marks = std::vector<commit_mark>;

  postgres_history();

  // -- any thread ----

  /// Queues a statement that compares the known marks with the database. Queue
  /// it after a load, on the same connection. Returns the known marks.
  marks queue_mark_check(postgres_connection& connection) const;

  /// Evaluates the answer to the `queue_mark_check` that returned `asked`.
  /// Returns false, and suspects the history, if the database does not have
  /// all known marks. Fails with `errc::store_failed` if the database has a
  /// newer layout.
  result<bool> take_mark_check(const marks& asked,
                               const postgres_rows& answer,
                               std::string_view attempted);

  /// Runs one statement and returns its rows. The known marks are compared
  /// after it on the same connection, so they cover these rows.
  result<postgres_rows> read(postgres_connection& connection,
                             const postgres_statement& statement,
                             const postgres_parameters& parameters,
                             std::string_view attempted);

  /// Returns true if a load has found that a known mark is missing. That load
  /// has returned the data of the other history.
  bool is_suspected() const;

  // -- the committing thread ----

  /// The mark of a commit that is not confirmed yet.
  struct new_mark {
    commit_mark mark;
    marks asked;          ///< The marks that were known.
    bool is_same = false; ///< True if the database has all of `asked`.
    /// Answers to the statements that were queued before.
    std::vector<postgres_rows> earlier;
  };

  /// Runs the queued statements, inserts the next mark, and compares the known
  /// ones. The transaction must hold the commit lock: without it two commits
  /// could get the same number. Fails as `take_mark_check` does.
  result<new_mark> add(postgres_connection& connection,
                       std::string_view attempted);

  /// Records that the commit of `made` was confirmed. A commit whose outcome is
  /// unknown is not recorded, so it never counts as lost.
  void confirm(const new_mark& made);

  /// Accepts the database's history as the known one. Counts the confirmed
  /// commits of this process that it does not have.
  result<lost_history> change_over(postgres_connection& connection,
                                   std::string_view attempted);

private:
  void note_marks(const marks& asked, const commit_mark& newest);

  mutable std::mutex mutex_;
  /// Usually one. Concurrent loads may each have found a newer one.
  marks known_;
  bool is_suspected_ = false;
  // -- the committing thread ----
  std::mt19937_64 random_;
  /// The newest confirmed marks of this process.
  std::deque<commit_mark> own_;
};

} // namespace troupe
