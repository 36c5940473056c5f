// Graphs made from the structure that a workflow's first event records.
// Internal.

#pragma once

#include "troupe/agents/graphs/graph.hpp"

#include <memory>
#include <string>
#include <vector>

namespace troupe {

/// A graph without work: its nodes are joins, and functions and maps that do
/// nothing.
struct recorded_graph {
  std::unique_ptr<const workflow_graph> graph;
  /// Kinds of the nodes, as the structure names them, in the order of the
  /// nodes.
  std::vector<std::string> kinds;
  /// True for a node that runs an agent, itself or for items; by node.
  std::vector<bool> has_agent;
};

/// Reads the output of `workflow_graph::structure`. Fails with
/// `errc::not_found` if the structure has a hash alone, and with
/// `errc::invalid_argument` if it is none. Visits have no limit.
result<recorded_graph> read_structure(const std::string& workflow,
                                      const json& structure);

} // namespace troupe
