// A scheduler for CAF: a job stays on the worker that has its data in its
// cache, and idle workers sleep instead of polling.
//
// The first job that a worker schedules runs next on this worker, without
// passing a queue. Other workers take jobs only of a worker that has many, or
// that is busy with a long one. CAF 0.17's own scheduler runs the newest job
// first, so callers starve under load. It also polls with sleeps of 50 µs,
// which delay each round trip between two threads (docs/architecture.md, "A
// scheduler of our own").

#pragma once

#include <caf/fwd.hpp>

#include <cstddef>

namespace troupe::actors {

/// Makes actor systems that are built from `config` use this scheduler with
/// `threads` workers; 0 means one per core. Call before the `caf::actor_system`
/// is made.
void install_scheduler(caf::actor_system_config& config, std::size_t threads);

/// Returns true if the calling thread is a worker of such a scheduler. A
/// blocking call there could wait for itself.
bool is_worker_thread() noexcept;

/// Returns true if the calling thread is a worker of `system`. The system
/// outlives its workers.
bool is_worker_of(const caf::actor_system& system) noexcept;

/// Tells the scheduler that the job that this worker begins may be long, as
/// users' code may be. Makes sure that another worker is awake that can take
/// the jobs behind it.
void start_long_job() noexcept;

/// Wakes a sleeping worker for the jobs that the current job will make. Call it
/// at the beginning of a job that is long and makes others.
void ask_for_help() noexcept;

/// While it lives, jobs that this worker schedules wake no other worker: this
/// worker runs them soon. A wake-up takes longer than the whole job of an
/// owner. Only for code that is known to be short, so never around users' code.
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

/// The same for a job that can wait: it runs when there is no other job, or
/// after some others. A system that ends does not wait for it. Schedulers of
/// other kinds run it like all jobs.
void schedule_behind(caf::actor_system& system, caf::resumable* job);

} // namespace troupe::actors
