// What each kind of agent does, as coroutines on a lane.

#pragma once

#include "troupe/actors/lane_actor.hpp"

#include <string>

namespace troupe::actors {

/// Runs `which` on `lane` below `caller` (null at the root), from `checkpoint`
/// if it is not null; a checkpoint of another agent is one that `which` handed
/// over to. Throws `troupe::error`, or what user code threw.
task<agent_end> run_agent(lane_actor& lane,
                          const invocation_context* caller,
                          const agent& which,
                          std::string branch,
                          const json* checkpoint);

} // namespace troupe::actors
