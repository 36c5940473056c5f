// Workflows: agents whose sub-agents, functions and tools are the nodes of
// a graph.

#pragma once

#include "troupe/agents/workflow_node.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// Options of a workflow (`workflow`).
struct workflow_options {
  /// Identifier; unique in the tree and not `user`.
  std::string name = {};
  /// Text for models that may hand over to the agent or call it as a tool.
  std::string description = {};
  /// The nodes. Their order is that of drawings, and of the names in an error.
  std::vector<workflow_node> nodes = {};
  /// The edges, at least one from `workflow_start`. Their order is that in
  /// which nodes after the same node are started.
  std::vector<workflow_edge> edges = {};
  /// Most nodes that may run at the same time; unset: no limit of its own.
  /// `run_options::lanes_max` limits every value.
  std::optional<std::size_t> lanes_max = {};
  /// State key of any scope that receives the output of the workflow. Empty:
  /// none.
  std::string output_key = {};
  /// Callbacks before the agent, in order until one answers.
  std::vector<agent_callback> before_agent = {};
  /// Callbacks after the agent, in order until one answers.
  std::vector<agent_callback> after_agent = {};
};

/// An agent that runs the nodes of a graph. A node starts when an edge to it is
/// followed; nodes that are reached at the same time run at the same time, each
/// on a lane of its own. Visits of one node run one after another.
///
/// A node that escalates does not end the workflow; the workflow escalates at
/// its end, which ends enclosing loops.
///
/// Each visit ends with one event, which holds its output, its routes and its
/// changes of state. A node that fails for good ends the workflow: the other
/// nodes are cancelled and awaited, and the error names the node. Joins can go
/// on without such a node (`join::on_failed`).
///
/// A path ends at a node after which no edge is followed. If only one node can
/// end a path, its last output is the output of the workflow. If several can,
/// the output is an object by their names. A node can end a path unless one of
/// its edges is followed always or `otherwise`. The last event of
/// the workflow has it as `output` (`output_of`).
///
/// Throws `errc::invalid_argument`, naming the nodes, for
/// - a name that is no identifier, is `START`, or comes twice;
/// - an edge that names no node, an edge to START, an edge from START that has
///   routes, and a node that START does not reach;
/// - two edges between the same nodes that are followed for the same route, or
///   one of which is always followed; `otherwise` together with routes;
/// - a cycle of edges that are always followed: it would never end;
/// - an empty function, a tool that only prepares requests or is long-running,
///   and a `join::count` of 0 or above the number of nodes before the join;
/// - a join that skips failed inputs if each node before it has an edge to
///   something else, so that its failure ends the workflow;
/// - an edge with routes from a map, which gives none;
/// - limits of 0, times below 0, and other values that `node_retry` excludes;
/// - everything that `make_agent` refuses.
agent workflow(workflow_options options);

/// Returns the output of the node or the workflow that ended with this event;
/// null if it has none.
json output_of(const event& said);

} // namespace troupe
