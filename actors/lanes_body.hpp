// The bodies of agents that run lanes: a parallel agent, and a map.

#pragma once

#include "troupe/actors/lane_actor.hpp"

namespace troupe::actors {

/// Both throw `agent_paused` when lanes have to wait that the agent needs.
task<> run_parallel(lane_actor& lane,
                    invocation_context& context,
                    const agent& which,
                    const parallel_options& options);
task<> run_map(lane_actor& lane,
               invocation_context& context,
               const agent& which,
               const map_options& options);

} // namespace troupe::actors
