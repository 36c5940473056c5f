// What each kind of agent does, as coroutines on a lane.

#pragma once

#include "troupe/actors/lane_actor.hpp"

#include <string>

namespace troupe::actors {

/// Runs `which` on `lane` below `caller` (null at the root) and says whether an
/// event of it escalated. Throws `troupe::error`, or what user code threw.
task<bool> run_agent(lane_actor& lane,
                     const invocation_context* caller,
                     const agent& which,
                     std::string branch);

} // namespace troupe::actors
