// What a runtime runs on when it is to have no threads: a loop that takes all
// that is ready, and decides what comes next.
//
// A simulation brings one. Everything that a runtime leaves to threads
// otherwise, its actors' turns, its store, its tools, is then a job of the
// loop; its timers are the environment's.

#pragma once

#include <caf/fwd.hpp>

#include <cstdint>
#include <functional>

namespace troupe::actors {

enum class job_kind : std::uint8_t { turn, store_write, store_read, tool };

class job_loop {
public:
  virtual ~job_loop() = default;

  /// Runs `work` once, later, in whatever order; `work` does not throw. Called
  /// by jobs and by whoever runs the loop. Of `turn`s this may come back after
  /// other jobs.
  virtual void post(job_kind kind, std::function<void()> work) = 0;

  /// Runs jobs until `done` says so. Not called by jobs.
  virtual void run_until(const std::function<bool()>& done) = 0;
};

/// Makes systems built from `config` run on `loop`, which outlives them, and
/// runtimes on them have no threads. Call before the `caf::actor_system` is
/// made.
void use_job_loop(caf::actor_system_config& config, job_loop& loop);

/// The loop that a system runs on, or null if it has threads.
job_loop* loop_of(caf::actor_system& system) noexcept;

} // namespace troupe::actors
