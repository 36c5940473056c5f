// What a run does, as a coroutine on its root lane: the agents, from the
// beginning or from where an earlier run has paused, with the plugins around
// them.

#pragma once

#include "troupe/actors/lane_actor.hpp"

namespace troupe::actors {

/// Throws `troupe::error`, or what user code threw. A checkpoint that it gives
/// is in the session already.
task<agent_end> run_root(lane_actor& lane);

} // namespace troupe::actors
