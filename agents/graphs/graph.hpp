// The graph of a workflow, checked and with numbers in place of names.
// Internal.

#pragma once

#include "troupe/agents/workflow.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace troupe {

/// Limit of the text of a structure in an event, in bytes; of a larger one the
/// event has a hash.
inline constexpr std::size_t structure_bytes_max = std::size_t{64} << 10U;

/// An immutable graph. Thread-safe.
class workflow_graph {
public:
  /// Number of a node: its place in the list of nodes.
  using number = std::size_t;

  /// Stands for the point where the workflow begins.
  static constexpr number start = SIZE_MAX;

  /// The work of a map for one item.
  struct mapped {
    std::variant<std::size_t, node_function, tool> work;
    std::optional<std::size_t> lanes_max = {};
  };

  /// A node. Agents are the sub-agents of the workflow, by their place.
  struct node {
    std::string name;
    std::variant<std::size_t, node_function, tool, join, mapped> work;
    node_retry retry;
    std::optional<std::chrono::milliseconds> timeout;
    std::uint64_t visits_max = 0;
    /// Places of its edges in `edges`, in order.
    std::vector<std::size_t> leaves = {};
    /// Nodes before it, and `start` if there is an edge from START; each once,
    /// in the order of the nodes with `start` first.
    std::vector<number> before = {};
  };

  struct edge {
    number from;
    number to;
    std::vector<route> routes;
    bool otherwise;
  };

  /// Takes the nodes and edges of a workflow, with the agents in `agents`.
  /// Throws `errc::invalid_argument` as `workflow` does.
  workflow_graph(std::string name,
                 const std::vector<workflow_node>& nodes,
                 const std::vector<workflow_edge>& edges,
                 std::vector<agent>& agents);

  const std::vector<node>& nodes() const noexcept { return nodes_; }

  const std::vector<edge>& edges() const noexcept { return edges_; }

  /// Returns the number of the node of that name, or `start` if there is none.
  number find(std::string_view name) const;

  /// Returns the nodes that the edges of `from` lead to for these routes, one
  /// for each edge that is followed. `from` may be `start`.
  std::vector<number> followed(number from,
                               const std::vector<route>& routes) const;

  /// Returns the route of an edge from the node that is equal to an output;
  /// unset if there is none. A text counts without the white space around it.
  std::optional<route> route_of(number from, const json& output) const;

  /// Returns the nodes at which a path can end, in order.
  const std::vector<number>& ends() const noexcept { return ends_; }

  /// Returns the joins, in order.
  const std::vector<number>& joins() const noexcept { return joins_; }

  /// Returns true if the workflow goes on when the node has failed for good:
  /// all of its edges, of which there is one, lead to joins that skip it.
  bool skips_failure_of(number which) const;

  /// Returns the place of a node along the edges: lower than that of nodes that
  /// it leads to, unless they lead back. Nodes of one cycle have the same.
  std::size_t rank(number which) const { return ranks_[which]; }

  /// Returns true if all nodes before a join are reached from `from` without
  /// passing the join. `from` may be `start`.
  bool encloses(number from, number join) const;

  /// Returns the names of the nodes on the cycles through `which`, in order.
  std::vector<std::string> cycle_of(number which) const;

  /// Returns the structure as JSON: `{"nodes": [{"name", "kind", "edges":
  /// [string], "count"?, "onMissing"?, "onFailed"?, "each"?}]}`, or, if its
  /// text has more than 64 KiB, `{"hash": string}`. `each` is the kind of the
  /// work of a map. Graphs with equal structure have the same nodes, kinds,
  /// joins and edges, in the same order.
  const json& structure() const noexcept { return structure_; }

private:
  json make_structure() const;
  void check_edges() const;
  void check_cycles() const;
  void check_joins() const;
  void rank_nodes();
  [[noreturn]] void refuse(std::string why) const;

  std::string name_;
  std::vector<node> nodes_;
  std::map<std::string, number, std::less<>> numbers_; // By name.
  std::vector<edge> edges_;
  std::vector<std::size_t> start_leaves_;
  std::vector<number> ends_;
  std::vector<number> joins_;
  std::vector<std::size_t> ranks_;
  json structure_;
};

/// Returns the kind of a node, as the structure and the views name it:
/// `"agent"`, `"function"`, `"tool"`, `"join"` or `"map"`.
std::string_view kind_of(const workflow_graph::node& which);

/// Returns the place of the agent that a node runs, itself or for the items of
/// a map; null if it runs none.
const std::size_t* agent_of(const workflow_graph::node& which);

/// Returns the first difference between two structures, in words that follow
/// the name of the workflow: "node 'check' is missing".
std::string difference_of(const json& before, const json& now);

} // namespace troupe
