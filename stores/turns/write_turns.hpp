// Turns of processes that write to the same users or apps.
//
// A process whose commit is refused, or that finds its owners moved, loads all
// owners of its undone decisions again. Without turns, another process commits
// meanwhile, and the load is lost. With the turn, its second try is written,
// and so are its next commits for some milliseconds; processes that contend
// with it wait in a queue (`turn_line`), in the order of arrival.
//
// A process whose commits are always written does not notice the others. So a
// process in the queue publishes which users and apps it wants. One that writes
// to them without a turn reads this, and enters the queue.
//
// Invariant: a turn decides when a commit is tried, never whether it is
// written. Each commit compares revisions, with the turn or without it.

#pragma once

#include "troupe/stores/store.hpp"
#include "troupe/stores/turns/line.hpp"

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <unordered_set>
#include <vector>

namespace troupe {

/// Limits of turns. None of them changes an outcome.
struct turn_limits {
  /// A turn ends with the first commit that is written this long after the
  /// first one of the turn. Long beside the load of the owners, which each turn
  /// needs.
  std::chrono::milliseconds span{8};
  /// It ends when no call has come for this long.
  std::chrono::milliseconds idle{2};
  /// The same after a call that named moved owners: these load. Doubled, up to
  /// half of `patience`, each time that a turn ends while they load.
  std::chrono::milliseconds retry{30};
  /// Maximum length of a turn; twice the time of its loads if that is longer. A
  /// call that is under way ends first.
  std::chrono::milliseconds longest{60};
  /// Maximum time to wait for one process that is before this one: it may be
  /// stopped.
  std::chrono::milliseconds patience{250};
  /// Time between two looks of a process that does not contend.
  std::chrono::milliseconds look{1};
  /// Time for which changes of other processes are remembered.
  std::chrono::milliseconds memory{500};
};

/// The turns of one store. All calls but `expire` come from the thread that
/// commits. For each call of the store, it calls `begin_look` or `begin_commit`
/// before it, and the `end_...` of the same name or `end_failed` after it.
class write_turns {
public:
  using time_point = std::chrono::steady_clock::time_point;
  using clock = std::function<time_point()>;

  /// Ends overdue turns by a thread of its own, which the first turn starts.
  /// `line` may be null: there are no turns then. A wait calls `meanwhile` on
  /// the waiting thread, as `turn_line::enter` does.
  explicit write_turns(std::unique_ptr<turn_line> line,
                       turn_limits limits = {},
                       std::function<void()> meanwhile = {});

  /// For tests: without a thread; call `expire`.
  write_turns(std::unique_ptr<turn_line> line, clock now, turn_limits limits);

  write_turns(const write_turns&) = delete;
  write_turns& operator=(const write_turns&) = delete;
  /// Ends the turn.
  ~write_turns();

  /// Begins `store::changed_elsewhere`. Waits for the turn if this process
  /// contends with others and does not have it. Does not wait directly after a
  /// commit that ended the turn, since the answer may confirm that commit.
  void begin_look();

  /// Begins `store::commit`. Waits as above, and also if another process waits
  /// for a turn to write to a user or an app of the changes.
  void begin_commit(std::span<const store_change> changes);

  /// Ends `changed_elsewhere`.
  void end_look(std::span<const moved_owner> moved);

  /// Ends `commit`.
  void end_commit(std::span<const store_change> changes,
                  const commit_outcome& outcome);

  /// Ends a call that has failed, and with it the turn.
  void end_failed();

  /// Ends the turn if it is overdue.
  void expire();

  /// Returns true if this process has the turn.
  bool has_turn();

private:
  using names = std::unordered_set<owner_name>;

  void begin(bool may_wait);
  void look_for_others(std::span<const store_change> changes);
  void note_met(const owner_name& owner);
  void keep(std::chrono::milliseconds time);
  void keep_for_load();
  void end_turn();
  bool start_timer();
  bool is_own(const owner_name& owner) const;
  void forget_old_names();
  void note_own(std::span<const store_change> changes);
  void run();

  const std::unique_ptr<turn_line> line_;
  const turn_limits limits_;
  const std::function<void()> meanwhile_;
  const clock now_;
  const bool has_timer_;

  // Used only by the thread that commits. Users and apps that this process has
  // written while others write, in two generations.
  names own_;
  names own_before_;
  time_point renewed_{};
  // Those of them that others have changed while this process contends.
  std::vector<owner_name> met_;
  time_point looked_{};
  time_point others_until_{};   // Others write.
  time_point contends_until_{}; // Others write to the same users or apps.
  bool has_ended_ = false;      // The last commit has ended the turn.

  std::mutex mutex_;
  std::condition_variable changed_;
  bool has_turn_ = false;
  bool is_calling_ = false;
  bool is_loading_ = false; // A call of the turn has named moved owners.
  bool is_stopping_ = false;
  // Time that owners get to load; adapts.
  std::chrono::milliseconds load_time_{limits_.retry};
  time_point began_{};
  time_point due_{};
  std::optional<time_point> written_; // First commit of the turn.
  std::thread timer_;
};

} // namespace troupe
