// Expected time that a new append waits for the store, and whether it is too
// long.
//
// The expected wait is the work of all appends under way, divided by the rate
// at which such work was completed recently. The rate is measured only while
// appends queue up: without a backlog, completions show the load and not the
// speed of the store. While the rate is unknown, an append is refused only if
// the store has completed nothing for the longest allowed wait.

#pragma once

#include "troupe/actors/engine/load_gate.hpp"
#include "troupe/core/environment.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>

namespace troupe::actors {

class append_wait {
public:
  /// `time` outlives this object. If `wait_max` is zero, no append is refused.
  append_wait(environment& time, std::chrono::nanoseconds wait_max);

  /// Returns true if a new append is expected to complete within `wait_max`,
  /// after those under way. Thread-safe.
  bool admits(append_load under_way) const;

  // The store's queue calls the members below, one call at a time.

  /// Notes that a letter waits for the store. No effect unless the store is
  /// idle.
  void start();

  /// A group of letters that the store has settled.
  struct group {
    append_load done = {};
    append_load under_way = {}; ///< Includes `done`.
    bool has_more = false;      ///< More letters are queued.
    /// Commits are decided again, since other processes were first. The time
    /// that they took shows nothing about small groups that follow.
    bool is_decided_again = false;
  };

  /// Notes that the store has settled a group.
  void update(const group& settled);

private:
  static constexpr auto unlimited = std::numeric_limits<std::uint64_t>::max();

  std::int64_t now() const;

  bool is_known() const noexcept { return rate_time_ > 0; }

  bool is_stale(std::int64_t idle_time) const noexcept;
  bool is_full(append_load under_way) const noexcept;
  bool tells(double work, double time) const noexcept;
  void measure(std::int64_t settled);
  void learn(double work, double time) noexcept;
  void forget() noexcept;

  environment& time_;
  const std::int64_t wait_max_; // Nanoseconds, as all times here.

  // Read by all threads that append; changed once per group. `since_` is the
  // time of the last completion, or of a later `start`. It is written before
  // `is_idle_` and read after it: a reader that sees `is_idle_` false then has
  // the matching time.
  std::atomic<std::int64_t> since_{0};
  std::atomic<bool> is_idle_{true}; // No letters wait for the store.
  std::atomic<std::uint64_t> work_max_{unlimited};

  // After the last group, at least as much work waited as was done since
  // `from_`.
  bool is_queueing_ = false;
  // Work since `from_`, of groups that were too small to show a rate.
  std::int64_t from_ = 0;
  double work_ = 0;
  bool was_decided_again_ = false; // In the time since `from_`.
  // Time that a group takes, however small it is.
  double fixed_time_ = 0;
  // Sums over the groups that showed a rate; each group weighs twice as much as
  // the one before.
  double rate_work_ = 0;
  double rate_time_ = 0;
  std::int64_t loaded_at_ = 0; // Time of the last backlog.
};

} // namespace troupe::actors
