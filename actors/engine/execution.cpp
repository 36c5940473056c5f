#include "troupe/actors/engine/execution.hpp"

#include "troupe/actors/engine/job_loop.hpp"
#include "troupe/actors/engine/lent_thread.hpp"
#include "troupe/actors/engine/scheduler.hpp"

#include <cstdint>

namespace troupe::actors {

execution::execution(caf::actor_system& on)
  : system(on),
    loop(loop_of(on)),
    actors(SIZE_MAX, SIZE_MAX),
    senders(SIZE_MAX, SIZE_MAX) {}

void schedule(execution& on, caf::resumable* job) {
  if (is_worker_of(on.system))
    return schedule(on.system, job);
  // The job may end the last actor that keeps the execution.
  const auto kept = on.shared_from_this();
  kept->senders.enter(0);
  schedule(kept->system, job);
  kept->senders.leave(0);
}

void schedule_brief(execution& on, caf::resumable* job) {
  if (!lent_thread::take(on, job))
    schedule(on, job);
}

} // namespace troupe::actors
