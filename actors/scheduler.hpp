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

/// Enters `job` (one reference to it) into the scheduler of `system`, from any
/// thread.
void schedule(caf::actor_system& system, caf::resumable* job);

} // namespace troupe::actors
