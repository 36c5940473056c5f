// Marks on a drawing: states of nodes, and the nodes of an event.

#pragma once

#include "troupe/agents/drawings/diagram.hpp"
#include "troupe/core/event.hpp"

#include <string>
#include <vector>

namespace troupe::drawings {

/// Words about the state of a node: "running, attempt 2", "done, visit 3".
std::string words_of(const node_progress& shown, const workflow_view& in);

/// Marks the workflows of a drawing, and their nodes, with the states that
/// `seen` has: of each workflow the last element with its name. A workflow with
/// other nodes is not marked.
void mark(node& root, const std::vector<workflow_view>& seen);

/// Points at the nodes of an event: of a visit of a workflow its node, else the
/// author, the tools that the event calls or has answers of, and the agent that
/// it hands over to.
void point_at(node& root, const event& said);

} // namespace troupe::drawings
