// The bodies of agents that run lanes: parallel and map agents.

#pragma once

#include "troupe/actors/runs/lane.hpp"

namespace troupe::actors {

/// Both throw `agent_paused` if lanes that the agent needs have paused.
task<> run_parallel(lane_actor& lane,
                    invocation_context& context,
                    const agent& which,
                    const parallel_options& options);
task<> run_map(lane_actor& lane,
               invocation_context& context,
               const agent& which,
               const map_options& options);

} // namespace troupe::actors
