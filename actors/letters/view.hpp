// State on its way between owners and runs: the keys of an owner, and the
// newest view of a session.

#pragma once

#include "troupe/contexts/lanes/host.hpp"
#include "troupe/core/state.hpp"

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

namespace troupe::actors {

/// The keys of an owner, as the owner sends them down to its children.
struct scope_version {
  state_map keys;
  /// Number of times that the owner had been invalidated when it loaded `keys`.
  /// A number lower than the owner's current one means that `keys` are stale.
  std::uint64_t generation = 0;
};

/// The newest state and events that a session has published for its runs. Runs
/// read it without a message. Thread-safe.
class session_view {
public:
  step_view read() const {
    const std::lock_guard guard(mutex_);
    return newest_;
  }

  /// Replaces the view, unless a newer one is there. `number` is the number of
  /// the view in its session.
  void write(step_view newest, std::uint64_t number);

private:
  mutable std::mutex mutex_;
  step_view newest_;
  std::uint64_t number_ = 0;
};

/// A view that is published once its contents are durable.
struct pending_view {
  void publish() {
    if (target)
      target->write(std::move(newest), number);
    target.reset();
  }

  std::shared_ptr<session_view> target;
  step_view newest;
  std::uint64_t number = 0;
  /// Generations of the versions in `newest`.
  std::uint64_t user_generation = 0;
  std::uint64_t app_generation = 0;
};

} // namespace troupe::actors
