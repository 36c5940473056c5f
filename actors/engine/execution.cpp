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

namespace {

template <class Pass>
void pass_to(execution& on, const Pass& pass) {
  if (is_worker_of(on.system))
    return pass(on.system);
  // The job may end the last actor that keeps the execution.
  const auto kept = on.shared_from_this();
  kept->senders.enter(0);
  pass(kept->system);
  kept->senders.leave(0);
}

} // namespace

void schedule(execution& on, caf::resumable* job) {
  pass_to(on, [job](caf::actor_system& system) { schedule(system, job); });
}

void schedule_behind(execution& on, caf::resumable* job) {
  pass_to(on,
          [job](caf::actor_system& system) { schedule_behind(system, job); });
}

void schedule_brief(execution& on, caf::resumable* job) {
  if (!lent_thread::take(on, job))
    schedule(on, job);
}

} // namespace troupe::actors
