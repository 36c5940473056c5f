// What each kind of agent does, as coroutines on a lane.

#pragma once

#include "troupe/actors/lane_actor.hpp"

#include <string>

namespace troupe::actors {

/// Runs `which` on `lane` below `caller` (null at the root), from a checkpoint
/// if it is not null, which may be of an agent that `which` handed over to.
/// Throws `troupe::error`, or what user code threw; `errc::conflict` if the
/// checkpoint is of another agent.
task<agent_end> run_agent(lane_actor& lane,
                          const invocation_context* caller,
                          const agent& which,
                          std::string branch,
                          checkpoint_ptr from);

} // namespace troupe::actors
