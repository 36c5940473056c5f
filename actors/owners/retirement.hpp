// Eviction of idle owners from memory, over a store only, since a store can
// load them again. Suggests to sessions that they leave: those that were idle
// for long, and the longest idle ones if there are too many. Users follow their
// sessions; apps leave when they are idle.

#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

namespace troupe::actors {

struct setup;

/// Thread-safe.
class retirement {
public:
  /// `shared` outlives this object.
  explicit retirement(setup& shared) : shared_(shared) {}

  /// Starts the idle timer. No effect if the option `session_idle_max` is unset
  /// (zero in `setup_options`).
  void start();

  /// Call when a session has entered memory. Starts eviction if there are too
  /// many sessions.
  void note_entry();

  /// Call when an app has entered memory; `count` apps are there. Starts
  /// eviction if there are too many.
  void note_apps(std::size_t count);

  /// Idle checks per `session_idle_max`. An idle owner leaves after one to one
  /// and a quarter of that time.
  static constexpr std::size_t idle_checks_per_age = 4;

private:
  bool is_too_many(std::size_t count) const;

  void schedule_idle_check();
  void evict_idle();
  void evict_surplus();
  // Suggests to all sessions whose last use was at `tick` or before that
  // they leave.
  void suggest(std::uint64_t tick);

  setup& shared_;
  std::atomic<bool> counting_{false};
  std::atomic<bool> counting_apps_{false};
  std::mutex mutex_;
  // Clock of the directory at the latest idle checks.
  std::deque<std::uint64_t> idle_checks_;
};

} // namespace troupe::actors
