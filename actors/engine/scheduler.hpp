// A scheduler for CAF: jobs run in order of arrival, and idle workers sleep
// instead of polling.
//
// CAF 0.17's own scheduler runs the newest job first, so callers starve under
// load. It also polls with sleeps of 50 µs, which delay each round trip between
// two threads (docs/architecture.md, "A scheduler of our own").

#pragma once

#include <caf/fwd.hpp>

#include <cstddef>

namespace troupe::actors {

/// Makes actor systems that are built from `config` use this scheduler with
/// `threads` workers; 0 means one per core. Call before the `caf::actor_system`
/// is made.
void install_scheduler(caf::actor_system_config& config, std::size_t threads);

/// Whether the calling thread is a worker of such a scheduler. A blocking call
/// there could wait for itself.
bool is_worker_thread() noexcept;

/// Whether the calling thread is a worker of `system`. The system outlives its
/// workers.
bool is_worker_of(const caf::actor_system& system) noexcept;

/// While it lives, the first job that this worker schedules wakes no other
/// worker: this worker runs it next. A wake-up takes longer than the whole job
/// of an owner. Only for code that is known to be short, so never around users'
/// code.
class brief_job {
public:
  brief_job() noexcept;
  ~brief_job();
  brief_job(const brief_job&) = delete;
  brief_job& operator=(const brief_job&) = delete;
};

/// While it lives, actors that end on this thread do not ask CAF's clock to
/// forget their timeouts. Only for actors that have none.
class no_timeouts {
public:
  no_timeouts() noexcept;
  ~no_timeouts();
  no_timeouts(const no_timeouts&) = delete;
  no_timeouts& operator=(const no_timeouts&) = delete;
};

/// Passes `job`, with one reference to it, to the scheduler of `system`.
/// Thread-safe.
void schedule(caf::actor_system& system, caf::resumable* job);

} // namespace troupe::actors
