// The summary at the end of a run.
//
// It is made before the run leaves its session, so the next run that waits for
// its turn reads it, and two runs of a queue never sum up the same events. The
// holder of the run has all events of the agents by then; only the end of the
// run waits for the summary.

#pragma once

#include "troupe/actors/runs/lane.hpp"
#include "troupe/contexts/invocation_context.hpp"
#include "troupe/contexts/task.hpp"

namespace troupe::actors {

/// Appends a summary if the session is due for one. Never fails: the session
/// then keeps its events as they are, and the reason, unless the run was
/// cancelled, is a warning.
task<> compact(lane_actor& lane, invocation_context& context);

} // namespace troupe::actors
