// The bodies of agents that run lanes: parallel and map agents; and the wait
// for the lanes of a fan-out.

#pragma once

#include "troupe/actors/runs/lane.hpp"

namespace troupe::actors {

/// Starts the lanes of a fan-out, and waits until all have ended. The request
/// has their outcomes then; nothing is thrown.
task<> wait_for_lanes(lane_actor& lane, fan_out_request& request);

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
