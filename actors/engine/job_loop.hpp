// A loop that runs a runtime without threads: it collects all jobs that are
// ready and decides which one runs next.
//
// Simulations provide one. Activations of actors, rounds of the store's queue
// and tools then run as jobs of the loop. Timers belong to the environment.

#pragma once

#include <caf/fwd.hpp>

#include <cstdint>
#include <functional>

namespace troupe::actors {

enum class job_kind : std::uint8_t { actor, store_write, store_read, tool };

class job_loop {
public:
  virtual ~job_loop() = default;

  /// Runs `work` once, later, in any order. `work` does not throw. Called by
  /// jobs and by the caller of `run_until`. For an `actor` the call may first
  /// run other jobs before it returns.
  virtual void post(job_kind kind, std::function<void()> work) = 0;

  /// Runs jobs until `done` returns true. Must not be called by a job.
  virtual void run_until(const std::function<bool()>& done) = 0;
};

/// Makes actor systems that are built from `config` run on `loop`. The loop
/// outlives them; runtimes on them start no threads. Call before the
/// `caf::actor_system` is made.
void use_job_loop(caf::actor_system_config& config, job_loop& loop);

/// The loop of an actor system, or null if it runs on threads.
job_loop* loop_of(caf::actor_system& system) noexcept;

} // namespace troupe::actors
