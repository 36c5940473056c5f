// A drawing of an agent and everything below it, as a value: nodes in nested
// groups, and edges between them.
//
// `draw` alone tells the kinds of agents apart. The writers (tree_text,
// dot_text, adk_form) read nodes and edges.

#pragma once

#include "troupe/agents/agent.hpp"
#include "troupe/agents/workflow_progress.hpp"
#include "troupe/core/json.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::drawings {

/// The nodes of a workflow are `start`, `function`, `join`, `tool`, and agents.
enum class node_kind : std::uint8_t {
  llm,
  sequential,
  parallel,
  map,
  loop,
  custom,
  workflow,
  start,
  function,
  join,
  tool,
  toolset,
  vendor_tool,
};

/// Returns the kind in words: "LLM", "sequence", "vendor's tool".
std::string_view to_string(node_kind kind) noexcept;

/// One property of a node.
struct fact {
  /// Its field in ADK's form, such as `max_iterations`; empty: none.
  std::string name;
  /// Value of the field.
  json data;
  /// Words for a reader, such as "at most 3 rounds"; empty: not shown.
  std::string words;

  friend bool operator==(const fact&, const fact&) = default;
};

/// How the steps of a node follow each other.
enum class flow : std::uint8_t {
  in_order, ///< One after the other.
  at_once,  ///< All at the same time.
  per_item, ///< The one step runs for each element of a list.
  routed,   ///< Along the edges.
};

/// An edge between two steps of a node, by their places. Unset: the node
/// itself.
struct edge {
  std::optional<std::size_t> from;
  std::optional<std::size_t> to;
  /// The route, or words about a repetition; may be empty.
  std::string label = {};
  /// True for the edge that is taken when no route fits.
  bool is_default = false;
};

/// Relation between an agent and another node that it uses.
enum class relation : std::uint8_t {
  tool,     ///< Its model calls a tool.
  call,     ///< Its model calls an agent as a tool (`agent_tool`).
  answer,   ///< Its model calls a sub-agent in mode `single_turn`.
  task,     ///< Its model gives a task to a sub-agent in mode `task`.
  transfer, ///< Its model hands over to a sub-agent.
  may_run,  ///< Its code may run a sub-agent.
};

struct use;

/// An agent, a tool, or another node of a workflow.
struct node {
  /// Unique in the drawing: the name in one line, with `/` for a backslash, and
  /// with a number behind it if the name is used before. Equal tools of several
  /// agents share one id, and so do the places where one agent is a tool.
  std::string id;
  std::string name;
  std::string description;
  node_kind kind = node_kind::custom;
  /// True if the node was drawn before, with its steps and uses.
  bool is_repeated = false;
  std::vector<fact> facts;
  /// Nodes inside of this one, and their flow. `edges` holds it completely,
  /// whatever `order` is.
  flow order = flow::in_order;
  std::vector<node> steps;
  std::vector<edge> edges;
  /// Nodes beside this one.
  std::vector<use> uses;
  /// State in a session, and words about it; unset: not shown.
  std::optional<node_state> state;
  std::string state_words;
  /// True if the drawing points at the node.
  bool is_current = false;
};

struct use {
  relation how = relation::tool;
  node what;
};

/// Draws an agent. Tools of a `toolset` are those that it knows without
/// waiting.
node draw(const agent& root);

} // namespace troupe::drawings
