// Drawings of an agent and everything below it: for people who read an agent
// file, for documents, and for the page of a server.

#pragma once

#include "troupe/agents/agent.hpp"
#include "troupe/agents/workflow_progress.hpp"

#include <string>
#include <vector>

namespace troupe {

/// Returns a drawing as lines of UTF-8 text, one for each agent and tool: the
/// order of a sequence, the lanes of a fan-out, the rounds of a loop, tools,
/// and the sub-agents that an agent hands over to. The last line has a line
/// break, too. Characters that a terminal obeys are shown as numbers, and long
/// texts are shortened. Tools of a `toolset` are those that it knows without
/// waiting. Safe from any thread.
std::string to_text(const agent& drawn);

/// Returns the same drawing with the states of the nodes of workflows. A
/// workflow has those of the last element of `seen` with its name, and none if
/// there is no such element or its nodes are others. Safe from any thread.
std::string to_text(const agent& drawn, const std::vector<workflow_view>& seen);

/// Colours and states of `to_dot`.
struct dot_options {
  /// True for a dark background. Default: a light one.
  bool dark = false;
  /// States of the nodes of workflows, as `to_text` takes them; they are shown
  /// in words, and as the colours of the nodes. Default: no states.
  std::vector<workflow_view> workflows = {};
};

/// Returns the same drawing as a graph in the DOT language of Graphviz, in
/// UTF-8: `dot -Tsvg` makes a picture of it. The name of a node in the graph is
/// that of its agent or tool; a name that comes again has a number behind it,
/// such as `"search (2)"`. Equal tools of several agents are one node. Safe
/// from any thread.
std::string to_dot(const agent& drawn, const dot_options& options = {});

} // namespace troupe
