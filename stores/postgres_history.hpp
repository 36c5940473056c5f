// The marks of commits, by which a process recognises that its database has
// another history than the one it knows: a server that lost its last commits,
// a replica that took over too early, a backup that was restored.
//
// Invariant: each known mark was read from the database, or its commit was
// confirmed, after everything that this process holds of it. If the database
// has all known marks, it has all of that.

#pragma once

#include "troupe/stores/postgres_connection.hpp"
#include "troupe/stores/store.hpp"

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <random>
#include <string_view>
#include <vector>

namespace troupe {

/// One row of the table `marks`: the number grows by one with each commit.
struct commit_mark {
  std::int64_t number = 0;
  std::int64_t stamp = 0;

  friend bool operator==(const commit_mark&, const commit_mark&) = default;
};

class postgres_history {
public:
  using marks = std::vector<commit_mark>;

  postgres_history();

  // -- of any thread

  /// Queues a statement that compares the known marks with the database, to be
  /// run behind a load on the same connection. Returns the known marks.
  marks queue_look(postgres_connection& connection) const;

  /// Judges the answer to `queue_look`, whose result `asked` is: whether the
  /// database has all known marks. If not, the history is suspected. Fails with
  /// `errc::store_failed` if the database has a newer layout.
  result<bool> take_look(const marks& asked,
                         const postgres_rows& answer,
                         std::string_view attempted);

  /// Whether a load has met a database without a known mark. The load has
  /// returned what is stored there.
  bool is_suspected() const;

  // -- of the thread that commits

  /// The mark of a commit that is about to be made.
  struct new_mark {
    commit_mark mark;
    marks asked;          ///< The marks that were known.
    bool is_same = false; ///< Whether the database has all of them.
    /// The answers of what was queued before.
    std::vector<postgres_rows> earlier;
  };

  /// Runs what is queued, writes the next mark, and compares the known ones.
  /// The transaction must hold the commit lock. Fails as `take_look`.
  result<new_mark> add(postgres_connection& connection,
                       std::string_view attempted);

  /// The commit of `made` is confirmed. A commit whose outcome is unknown is
  /// none of them, and does not count as lost.
  void confirm(const new_mark& made);

  /// Goes over to the history of the database, and counts the commits of this
  /// process that it does not have.
  result<lost_history> change_over(postgres_connection& connection,
                                   std::string_view attempted);

private:
  void settle(const marks& asked, const commit_mark& newest);

  mutable std::mutex mutex_;
  /// Usually one; concurrent loads may each have found a newer one.
  marks known_;
  bool is_suspected_ = false;
  // -- of the thread that commits
  std::mt19937_64 random_;
  /// The newest confirmed marks of this process.
  std::deque<commit_mark> own_;
};

} // namespace troupe
