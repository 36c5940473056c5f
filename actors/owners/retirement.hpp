// Eviction of idle owners. Suggests to sessions that they leave memory: the
// longest idle ones if there are too many and, over a store, those that were
// idle for long. There, users follow their sessions, and apps leave when they
// are idle. Without a store, a session becomes an `idle_session`.

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

  /// Starts the idle timer, over a store. No effect if the option
  /// `session_idle_max` is unset (zero in `setup_options`).
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

  setup& shared_;
  std::atomic<bool> counting_{false};
  std::atomic<std::size_t> entries_{0}; // Since the last count.
  std::atomic<bool> counting_apps_{false};
  std::mutex mutex_;
  // Clock of the directory at the latest idle checks.
  std::deque<std::uint64_t> idle_checks_;
};

} // namespace troupe::actors
