// A scheduler for CAF: first come, first served, and idle workers sleep instead
// of polling.
//
// CAF 0.17's own scheduler runs the newest job first, so that callers starve
// under load, and polls with sleeps of 50 µs, which a round trip between two
// threads then waits for (docs/architecture.md, "A scheduler of our own").

#pragma once

#include <caf/fwd.hpp>

#include <cstddef>

namespace troupe::actors {

/// Makes systems built from `config` use this scheduler with `threads` workers
/// (0: one per core). Call before the `caf::actor_system` is made.
void use_fair_scheduler(caf::actor_system_config& config, std::size_t threads);

/// Whether this thread is a worker of such a scheduler: blocking it may stop
/// what it waits for.
bool is_worker_thread() noexcept;

/// Whether it is a worker of this system, which ends after it.
bool is_worker_of(const caf::actor_system& system) noexcept;

/// While it lives, what this worker schedules first it also runs first, without
/// waking another worker for it: a wake-up costs more than an owner's whole
/// turn. For code that is known to be short, which users' code is not.
class brief_turn {
public:
  brief_turn() noexcept;
  ~brief_turn();
  brief_turn(const brief_turn&) = delete;
  brief_turn& operator=(const brief_turn&) = delete;
};

/// While it lives, an actor that ends on this thread has no time-outs for CAF's
/// clock to forget.
class no_timeouts {
public:
  no_timeouts() noexcept;
  ~no_timeouts();
  no_timeouts(const no_timeouts&) = delete;
  no_timeouts& operator=(const no_timeouts&) = delete;
};

/// Enters `job` (one reference to it) into the scheduler of `system`, from any
/// thread.
void schedule(caf::actor_system& system, caf::resumable* job);

} // namespace troupe::actors
