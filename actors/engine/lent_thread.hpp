// The thread of a blocked caller, lent to the owners: it runs the activations
// of actors that it wakes itself, instead of waking a worker and waiting for
// it.
//
// Only activations of owners run here. They are short and contain no code of
// users. All other jobs, and the activations above the limits, go to the
// scheduler. So no job waits for a thread that has left.

#pragma once

#include <caf/fwd.hpp>

#include <array>
#include <cstddef>
#include <memory>

namespace troupe::actors {

struct execution;

/// Belongs to one thread. Objects of one thread are nested: the innermost one
/// takes the activations.
class lent_thread {
public:
  /// Lends the calling thread to the actors that run on `on`, which outlives
  /// this object.
  explicit lent_thread(execution& on) noexcept;

  /// Passes the activations that have not run to the scheduler.
  ~lent_thread();

  lent_thread(const lent_thread&) = delete;
  lent_thread& operator=(const lent_thread&) = delete;

  /// Runs the oldest activation. Returns false if there is none, or if this
  /// thread has reached its limit.
  bool run_next();

  /// Takes `job` (one reference to it) if the calling thread is lent to the
  /// actors on `on` and has room for it. Returns false, and takes nothing,
  /// otherwise.
  static bool take(const execution& on, caf::resumable* job) noexcept;

  /// Returns true if the calling thread is lent and runs no activation at this
  /// moment: calls that start now are those of the blocked caller.
  static bool is_starting() noexcept;

  /// Returns the execution of the activation that the calling thread runs as a
  /// lent thread, or null. A blocking call in such an activation could wait for
  /// itself, and users' code must not run there.
  static execution* activation_on() noexcept;

private:
  static constexpr std::size_t waiting_max = 8;
  // Limits of one blocking call: at most this many activations, each with at
  // most this many letters.
  static constexpr std::size_t activations_max = 32;
  static constexpr std::size_t letters_max = 32;

  execution& on_;
  lent_thread* const outer_;
  std::array<caf::resumable*, waiting_max> waiting_{};
  std::size_t first_ = 0;
  std::size_t count_ = 0;
  std::size_t activations_ = 0;
  bool in_activation_ = false;
  // Keeps the actor system until this thread has left it. Set by the first
  // activation.
  std::shared_ptr<execution> entered_;
};

} // namespace troupe::actors
