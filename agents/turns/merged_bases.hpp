// The reads that the writes of one turn's tools are based on, as one event
// carries these writes.

#pragma once

#include "troupe/contexts/tool_call.hpp"

#include <vector>

namespace troupe {

/// Returns the bases of the event that `make_tool_event` makes of `answered`. A
/// plain write whose tool has not seen the changes of the tools before it, in
/// the order of the calls, is marked as a loss.
std::vector<write_basis> merge_bases(const std::vector<tool_call>& answered);

} // namespace troupe
