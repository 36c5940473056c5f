// The nodes and edges of a workflow, as its author describes them.

#pragma once

#include "troupe/agents/agent.hpp"
#include "troupe/agents/node_context.hpp"

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace troupe {

/// A value by which a node chooses the edges that are followed. Values of
/// different types are never equal: `true` is not 1, and 1 is not "1".
using route = std::variant<std::string, std::int64_t, bool>;

/// Returns the route as JSON: a string, an integer or a boolean.
json to_json(const route& value);

/// Reads the output of `to_json(route)`. Fails with `errc::invalid_argument`
/// for another type, and for an integer that has more than 64 bits.
result<route> route_from_json(const json& data);

/// The result of a node: a value for the nodes after it, and routes.
struct node_output {
  /// Makes the result of a node that has nothing to say.
  node_output() = default;

  /// Makes a result from anything that converts to JSON.
  template <class Value>

  requires(
    !std::same_as<Value, node_output> && std::constructible_from<json, Value>)
    node_output(Value output_, std::vector<route> routes_ = {})
    : output(std::move(output_)),
      routes(std::move(routes_)) {}

  /// The input of the nodes after it; null if there is none.
  json output = nullptr;
  /// Routes to follow: an edge with routes is followed if it names one of them.
  std::vector<route> routes = {};
};

namespace detail {

template <>
struct wanted<std::optional<node_output>(node_context&)> {
  template <bool Fits>
  static constexpr void check() {
    static_assert(Fits,
                  "the function of a node is [](troupe::node_context& context) "
                  "{ ... }; it returns nothing, a value that converts to "
                  "troupe::json, or a troupe::node_output, or is a coroutine "
                  "that returns troupe::task<std::optional<"
                  "troupe::node_output>>");
  }
};

} // namespace detail

/// The work of a node that is a function or a coroutine. A function must not
/// block; a coroutine can wait, and a tool (`troupe::tool`) may block. A copy
/// may run on several runs at the same time. An exception other than
/// `troupe::error` becomes `errc::callback_failed`.
using node_function = async_function<std::optional<node_output>(node_context&)>;

/// Effect of inputs that can no longer come on a join.
enum class missing_inputs : std::uint8_t {
  /// The workflow fails with `errc::stuck_join`, which names the join and the
  /// nodes.
  fail,
  /// The join fires without them.
  skip,
  /// The join does not fire; the inputs that it has are dropped.
  drop,
};

/// Effect of a node before a join that has failed for good.
enum class failed_inputs : std::uint8_t {
  /// The workflow fails with the error of the node.
  fail,
  /// The workflow goes on, if all edges from the node lead to joins with this
  /// rule. Each of them gets one input less.
  skip,
};

/// The work of a node that waits for the nodes before it. Its output is an
/// object: their outputs by name. Inputs belong together if they come from the
/// same fork of the workflow, so one round of a cycle is not mixed with another
/// one.
struct join {
  /// Number of inputs after which the join fires, from 1 to the number of nodes
  /// before it. Later inputs of the same round are dropped. Unset: all, but for
  /// those of failed nodes that `on_failed` skips; at least one.
  std::optional<std::size_t> count = {};
  /// Effect of inputs that can no longer come. If too many nodes before the
  /// join have failed, `fail` names them with their errors.
  missing_inputs on_missing = missing_inputs::fail;
  /// Effect of failed nodes before the join.
  failed_inputs on_failed = failed_inputs::fail;
};

/// The work of a node that runs once for each item of its input, which is a
/// list. A value that is no list counts as a list of one, and null as an empty
/// list. Each item runs on a lane and a branch of its own. The output is the
/// list of their outputs, in the order of the items. Routes of items are
/// refused.
///
/// Each item ends with an event of its own. The first item that fails cancels
/// the others, and is the failure of the node: `node_retry` and the time limit
/// are those of the node. Items that have ended do not run again, neither in a
/// later attempt nor after a question or a recovery.
struct map_over {
  /// Work of one item, which is its input. `node_context::key` is unique for
  /// each item. An agent can be the work of one node only.
  std::variant<node_function, agent, tool> work;
  /// Most items that run at the same time, at least 1. Unset: no limit of its
  /// own. `run_options::lanes_max` limits every value. The limit of the
  /// workflow counts the node once, whatever the number of its items.
  std::optional<std::size_t> lanes_max = {};
};

/// Rules for a node that failed. The n-th wait is `first_delay * factor^(n-1)`,
/// at most `delay_max`, and changed by a random share of at most
/// plus or minus `jitter`, but not above `delay_max`.
struct node_retry {
  /// Number of times that the node is tried, at least 1.
  std::uint64_t attempts_max = 1;
  /// Wait before the second attempt; not below 0.
  std::chrono::milliseconds first_delay = std::chrono::seconds(1);
  /// Growth of the wait with each attempt, at least 1.
  double factor = 2;
  /// Limit of a wait; not below 0.
  std::chrono::milliseconds delay_max = std::chrono::minutes(1);
  /// Random share of a wait, from 0 to 1.
  double jitter = 0.5;
  /// Errors after which the node is tried again. Empty: all of them. A
  /// cancelled run is never tried again.
  std::vector<errc> codes = {};
};

/// Work of a node. A workflow is an agent, so it can be a node, too.
using node_work = std::variant<node_function, agent, tool, join, map_over>;

/// A node of a workflow.
struct workflow_node {
  /// Identifier, unique in the workflow and not `START`. Empty: the name of the
  /// agent or the tool, also of those that a map runs. An agent can be one node
  /// only, since names of agents are unique in the tree.
  std::string name = {};
  /// Agent, function, tool, join or map that runs when the node is reached. The
  /// input of a tool is an object with its arguments, also as JSON text, or the
  /// value of the only parameter that it has or needs. An agent gets its input
  /// as a message that only this agent sees; null, or the message that started
  /// the run, makes none. The output of an agent is its last text, or the JSON
  /// value if it has an output schema.
  node_work work;
  /// Rules for a failure. Events that an agent had emitted before it failed
  /// stay.
  node_retry retry = {};
  /// Time limit of one attempt, above 0. After it, the node is cancelled and
  /// has failed with `errc::deadline_exceeded`. A plain function is not
  /// interrupted: if it returns late, its output counts. Unset: no limit.
  std::optional<std::chrono::milliseconds> timeout = {};
  /// Number of times that the node may be reached in a run, at least 1. Beyond
  /// it, the workflow fails with `errc::limit_exceeded`. It ends cycles.
  std::uint64_t visits_max = 100;
};

/// Name of the point where a workflow begins, for `workflow_edge::from`.
inline constexpr const char* workflow_start = "START";

/// An edge of a workflow. When a node has ended, its edges without routes are
/// followed, those with one of its routes, and, if no edge with routes fits,
/// those marked `otherwise`. If none is followed, this path of the workflow
/// ends there.
struct workflow_edge {
  /// Name of a node, or `workflow_start`.
  std::string from;
  /// Name of the node that runs next.
  std::string to;
  /// Routes of `from` for which the edge is followed. Empty: always.
  std::vector<route> routes = {};
  /// True if the edge is followed when no edge with routes is; it has no routes
  /// itself.
  bool otherwise = false;
};

} // namespace troupe
