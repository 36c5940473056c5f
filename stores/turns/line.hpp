// The queue in which processes wait for their turn to write to a store.

#pragma once

#include "troupe/stores/store.hpp"

#include <chrono>
#include <functional>
#include <span>

namespace troupe {

/// Places in a line are given in the order of arrival. The place of a process
/// that has ended is free. A line only saves work: a commit never depends on
/// it.
class turn_line {
public:
  turn_line() = default;
  turn_line(const turn_line&) = delete;
  turn_line& operator=(const turn_line&) = delete;
  virtual ~turn_line() = default;

  /// Takes a place at the end and waits until it is the first. Until `leave`,
  /// other processes see that this one wants the owners `wanted`. Waits no
  /// longer than `patience` for a process that is stopped, and two
  /// seconds in all. Returns false, without a place, if the line cannot be
  /// used. A line that polls calls `meanwhile`, unless it is empty, every few
  /// milliseconds.
  virtual bool enter(std::span<const owner_name> wanted,
                     std::chrono::milliseconds patience,
                     const std::function<void()>& meanwhile)
    = 0;

  /// Returns true if another process in the line wants one of these owners, or
  /// one with the same hash. False if the line cannot be used.
  virtual bool is_wanted(std::span<const owner_name> owners) = 0;

  /// Gives the place up. Called by any thread, but not during `enter`.
  virtual void leave() noexcept = 0;
};

} // namespace troupe
