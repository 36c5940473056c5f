// The coroutine of a workflow: starts the visits of its nodes, and follows the
// edges as their ends are committed.

#pragma once

#include "troupe/actors/runs/lane.hpp"

namespace troupe::actors {

/// Runs the workflow `which` on `lane`, or continues it from the checkpoint of
/// `context`. Throws `troupe::error`, and `agent_paused` if agents wait for
/// answers and nothing else can go on.
task<> run_workflow(lane_actor& lane,
                    invocation_context& context,
                    const agent& which,
                    const compiled_workflow& options);

} // namespace troupe::actors
