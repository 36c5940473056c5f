// Time and ids: those of the system, or simulated ones that a seed reproduces.

#pragma once

#include "troupe/core/event.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace troupe {

/// The source of time and ids of a runtime. All members are thread-safe.
class environment {
public:
  virtual ~environment() = default;

  /// Wall-clock time.
  virtual timestamp now() = 0;

  /// Time since a fixed moment, for measuring durations; never decreases. The
  /// default implementation returns `now` as time since 1970.
  virtual std::chrono::nanoseconds elapsed() {
    return now().time_since_epoch();
  }

  /// Makes a new UUID v4 in text form.
  virtual std::string new_id() = 0;

  /// Calls `done` after `delay`, on a thread of the environment or, in a
  /// simulation, on the thread that calls `advance`. `done` must be short and
  /// must not throw. Calls that are pending when the environment is destroyed
  /// are dropped.
  virtual void call_after(std::chrono::nanoseconds delay,
                          std::function<void()> done)
    = 0;
};

/// Makes UUIDs from a seed. The same seed gives the same ids in the same order.
class id_source {
public:
  /// Starts the sequence of ids that belongs to the 128 bits of the seed.
  explicit id_source(std::uint64_t seed_high, std::uint64_t seed_low)
    : high_(seed_high),
      low_(seed_low) {}

  /// Makes the next UUID v4 in text form. Thread-safe.
  std::string next();

private:
  std::uint64_t high_;
  std::uint64_t low_;
  std::atomic<std::uint64_t> count_{0};
};

/// Makes an environment with the system's clock, a thread for timers, and ids
/// seeded by the system's entropy.
std::shared_ptr<environment> system_environment();

/// Time that moves only by `advance`, and ids from `seed`. Thread-safe.
class simulated_environment : public environment {
public:
  /// Starts at a fixed time in 2026, because the epoch means "not set".
  explicit simulated_environment(std::uint64_t seed);
  ~simulated_environment() override;

  timestamp now() override;
  std::string new_id() override;
  void call_after(std::chrono::nanoseconds delay,
                  std::function<void()> done) override;

  /// Moves time forward and runs the calls that become due, in order of time,
  /// on the calling thread.
  void advance(std::chrono::nanoseconds step);

  /// Number of pending calls.
  std::size_t waiting() const;

private:
  struct timers;

  id_source ids_;
  std::unique_ptr<timers> timers_;
};

} // namespace troupe
