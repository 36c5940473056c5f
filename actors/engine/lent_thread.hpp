// The thread of a blocked caller, lent to the owners: it runs the activations
// of actors that it wakes itself, instead of waking a worker and waiting for
// it.
//
// Only activations of owners run here. They are short and contain no code of
// users. All other jobs, and the activations above the limits, go to the
// scheduler. So no job waits for a thread that has left. When nothing else is
// left, the thread may write the changes that it waits for to the store.

#pragma once

#include <caf/fwd.hpp>

#include <array>
#include <cstddef>
#include <memory>

namespace troupe::actors {

struct execution;

/// Work that a lent thread may do instead of a thread of the runtime, one
/// portion per call.
class spare_work {
public:
  /// Does the next portion, unless another thread is doing this work. Returns
  /// false if it does nothing.
  virtual bool work_here() = 0;

  /// Lets the thread of the runtime do the work.
  virtual void hand_over() noexcept = 0;

protected:
  ~spare_work() = default;
};

/// Belongs to one thread. Objects of one thread are nested: the innermost one
/// takes the activations.
class lent_thread {
public:
  /// Lends the calling thread to the actors that run on `on`, which outlives
  /// this object.
  explicit lent_thread(execution& on) noexcept;

  /// Passes the activations that have not run to the scheduler, and the work
  /// that was not done to its thread.
  ~lent_thread();

  lent_thread(const lent_thread&) = delete;
  lent_thread& operator=(const lent_thread&) = delete;

  /// Runs the oldest activation. Returns false if there is none, or if this
  /// thread has reached its limit.
  bool run_next();

  /// Does the work that was deferred last. Returns false if there is none, or
  /// if another thread does it.
  bool work_next();

  /// Takes `job` (one reference to it) if the calling thread is lent to the
  /// actors on `on` and has room for it. Returns false, and takes nothing,
  /// otherwise.
  static bool take(const execution& on, caf::resumable* job) noexcept;

  /// Lets the calling thread do `work` when it has no activation left, or hand
  /// it over at the latest when it leaves. Returns false if the thread is not
  /// lent to the actors on `on`. `work` lives as long as `on`.
  static bool defer(const execution& on, spare_work& work) noexcept;

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

  // Keeps the actor system until this thread has left it.
  void enter();

  execution& on_;
  lent_thread* const outer_;
  std::array<caf::resumable*, waiting_max> waiting_{};
  std::size_t first_ = 0;
  std::size_t count_ = 0;
  std::size_t activations_ = 0;
  bool in_activation_ = false;
  spare_work* deferred_ = nullptr;
  std::shared_ptr<execution> entered_; // Set by `enter`.
};

} // namespace troupe::actors
