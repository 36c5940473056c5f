// How long a new append would wait for the store, and whether that is too long.
//
// The expected wait is the work of all appends under way, divided by the rate
// at which such work has lately completed. A rate is known only while appends
// queue up: without a backlog the completions show the load, and not what the
// store could do. Without a rate an append is refused only while the store has
// completed nothing for the longest wait.

#pragma once

#include "troupe/core/environment.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>

namespace troupe::actors {

/// Appends and the bytes of their events.
struct append_load {
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
};

class append_wait {
public:
  /// Takes time from `time`, which outlives this. Zero as `wait_max`: nothing
  /// is ever refused.
  append_wait(environment& time, std::chrono::nanoseconds wait_max);

  /// Whether an append behind those under way is expected to complete within
  /// the longest wait. Thread-safe.
  bool admits(append_load under_way) const;

  // The rest is called by the store's queue, one call at a time.

  /// Something waits for the store. Has no effect unless the store is idle.
  void start();

  /// The store has taken a group with `done` in it. `under_way` includes
  /// `done`; `has_more` tells whether the queue to the store holds more.
  void settle(append_load done, append_load under_way, bool has_more);

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

  // Read by all threads that append; they change once per group. `since_` is
  // the time of the last completion, or of a later `start`. It is written
  // before `is_idle_`, and read behind it.
  std::atomic<std::int64_t> since_{0};
  std::atomic<bool> is_idle_{true}; // The queue to the store is empty.
  std::atomic<std::uint64_t> work_max_{unlimited};

  // As much waited behind the last group as was done since `from_`.
  bool is_queueing_ = false;
  // Since `from_`, of groups that did not tell the rate alone.
  std::int64_t from_ = 0;
  double work_ = 0;
  // What a group takes however small it is.
  double fixed_time_ = 0;
  // Of the groups that told the rate, each one worth half of the next.
  double rate_work_ = 0;
  double rate_time_ = 0;
  std::int64_t loaded_at_ = 0; // When appends queued up last.
};

} // namespace troupe::actors
