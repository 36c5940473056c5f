// The bodies of all kinds of agents, as coroutines on a lane.

#pragma once

#include "troupe/actors/runs/lane.hpp"

#include <string>

namespace troupe::actors {

/// Runs `which` on `lane`, called by the agent of `caller` (null at the root).
/// Starts from the checkpoint `from`, unless it is null; that may be the
/// checkpoint of an agent that `which` had handed over to.
///
/// Throws `troupe::error` and the exceptions of user code; `errc::conflict` if
/// the checkpoint belongs to another agent.
task<agent_end> run_agent(lane_actor& lane,
                          const invocation_context* caller,
                          const agent& which,
                          std::string branch,
                          checkpoint_ptr from);

} // namespace troupe::actors
