// The coroutine of a run's root lane: runs the agents, from the beginning
// or from the point where an earlier run paused, with the plugins' hooks
// around them.

#pragma once

#include "troupe/actors/runs/lane.hpp"

namespace troupe::actors {

/// Throws `troupe::error` and the exceptions of user code. If it returns a
/// checkpoint, the session already has it.
task<agent_end> run_root(lane_actor& lane);

} // namespace troupe::actors
