// Time and ids, handed in: the system's, or simulated ones that a seed replays.

#pragma once

#include "troupe/core/event.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace troupe {

/// Where a runtime gets time and ids from. All members are thread-safe.
class environment {
public:
  virtual ~environment() = default;

  virtual timestamp now() = 0;

  /// Time since a fixed moment, to measure durations with; never goes back.
  /// Unless overridden, `now` since 1970.
  virtual std::chrono::nanoseconds elapsed() {
    return now().time_since_epoch();
  }

  /// A new UUID v4 in text form.
  virtual std::string new_id() = 0;

  /// Calls `done` once `delay` has passed, on a thread of the environment;
  /// `done` must be short and must not throw. What is still waiting when the
  /// environment ends is dropped.
  virtual void call_after(std::chrono::nanoseconds delay,
                          std::function<void()> done)
    = 0;
};

/// UUIDs from a seed: the same seed gives the same ids in the same order.
class id_source {
public:
  explicit id_source(std::uint64_t seed_high, std::uint64_t seed_low)
    : high_(seed_high),
      low_(seed_low) {}

  std::string next();

private:
  std::uint64_t high_;
  std::uint64_t low_;
  std::atomic<std::uint64_t> count_{0};
};

/// The system's clock and a thread for timers; ids seeded by the system's
/// entropy.
std::shared_ptr<environment> system_environment();

/// Time that stands still until it is told to move, and ids from `seed`.
class simulated_environment : public environment {
public:
  explicit simulated_environment(std::uint64_t seed);
  ~simulated_environment() override;

  timestamp now() override;
  std::string new_id() override;
  void call_after(std::chrono::nanoseconds delay,
                  std::function<void()> done) override;

  /// Moves time on and runs what falls due, in order of time, on the calling
  /// thread.
  void advance(std::chrono::nanoseconds step);

  /// The number of calls that still wait for their time.
  std::size_t waiting() const;

private:
  struct timers;

  id_source ids_;
  std::unique_ptr<timers> timers_;
};

} // namespace troupe
