// An agent: an immutable description of work. Actors run it.
//
// One type for all kinds of agents: an LLM, a sequence, a fan-out over agents,
// a map over a list, a loop, a coroutine of the user's, and a workflow.

#pragma once

#include "troupe/agents/callback.hpp"
#include "troupe/agents/tool.hpp"
#include "troupe/agents/toolset.hpp"
#include "troupe/contexts/history_extent.hpp"
#include "troupe/contexts/instruction_template.hpp"
#include "troupe/contexts/invocation_context.hpp"
#include "troupe/models/model.hpp"

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace troupe {

class workflow_graph;

namespace detail {

template <>
struct wanted<task<>(invocation_context&)> {
  template <bool Fits>
  static constexpr void check() {
    static_assert(
      Fits,
      "the body of a custom agent is a coroutine, "
      "[](troupe::invocation_context& context) -> troupe::agent_run { ... } "
      "with a co_await or co_return in it");
  }
};

template <>
struct wanted<std::string(const readonly_context&)> {
  template <bool Fits>
  static constexpr void check() {
    static_assert(Fits,
                  "a function that makes an instruction is [](const "
                  "troupe::readonly_context& context) -> std::string { ... }");
  }
};

} // namespace detail

/// The coroutine of a custom agent.
using agent_run = task<>;
/// Body of a custom agent. The context lives until the coroutine has ended.
using agent_function = plain_function<agent_run(invocation_context&)>;

/// Makes the instruction for one model call. The result is used as it is,
/// without replacing placeholders. A plain function must not block. An
/// exception other than `troupe::error` becomes `errc::callback_failed`.
using instruction_provider
  = async_function<std::string(const readonly_context&)>;

/// The instruction of an LLM agent: a template (see `inject_session_state`) or
/// a provider.
class instruction {
public:
  instruction() = default;

  instruction(std::nullptr_t) = delete;

  /// Makes a template. The pointer must not be null.
  instruction(const char* text) : source_(std::string(text)) {}

  /// Makes a template. An empty one adds no instruction. Agent files use
  /// `template_braces::any`.
  instruction(std::string text,
              template_braces braces = template_braces::single)
    : source_(std::move(text)),
      braces_(braces) {}

  /// Takes a function or coroutine, which must not be empty.
  template <class Provider>

  requires std::is_constructible_v<instruction_provider, Provider>
  instruction(Provider provider)
    : source_(instruction_provider(std::move(provider))) {}

  /// Template text or provider.
  using source_type = std::variant<std::string, instruction_provider>;

  /// Source as given; an empty template by default.
  const source_type& source() const noexcept { return source_; }

  /// Rules for the braces in a template. A provider's text has no placeholders.
  template_braces braces() const noexcept { return braces_; }

private:
  source_type source_;
  template_braces braces_ = template_braces::single;
};

/// Choice of the part of the history that the model sees.
enum class include_contents : std::uint8_t {
  /// All events that are visible on the agent's branch (wire name: `default`).
  all,
  /// The current turn: from the latest event of the user or another agent on.
  none,
  /// The newest summary (agents/summary.hpp) and the events that it does not
  /// cover; without a summary the same as `all`.
  since_summary,
};

/// How an LLM agent below another LLM agent gets its work. The names are those
/// of ADK.
enum class agent_mode : std::uint8_t {
  /// The agent takes over the conversation, by `transfer_to_agent`.
  chat,
  /// The parent's model calls the agent as a tool. The agent may talk with the
  /// user, over several messages, until it calls its tool `finish_task`.
  task,
  /// The parent's model calls the agent as a tool, which answers without the
  /// user.
  single_turn,
};

// All kinds of agents share these fields: `name` is an identifier, unique in
// the whole tree, and not `user`. The callbacks in `before_agent` and
// `after_agent` are called in order until one answers.

/// Options of an LLM agent (`llm`).
struct llm_options {
  /// Identifier; unique in the tree and not `user`.
  std::string name = {};
  /// Text for models that may hand over to the agent or call it as a tool.
  std::string description = {};
  /// How the agent gets its work from a parent. An agent in mode `task` stands
  /// only below LLM agents, or is the root.
  agent_mode mode = agent_mode::chat;
  /// Model that the agent asks. Null is refused.
  model_ptr model = {};
  /// Resolved anew for each model call.
  troupe::instruction instruction = {};
  /// Root agent only: placed before the instructions of all agents in the tree.
  /// Its placeholders show the state that each of these agents sees.
  troupe::instruction global_instruction = {};
  /// A constant part, so that the vendor can cache it: no placeholders.
  /// If set, `instruction` goes into the conversation instead of the
  /// system instruction.
  std::string static_instruction = {};
  /// Contents before the whole conversation, the same in each model call, so
  /// that the vendor can cache them: files that `static_instruction` refers to.
  /// They are no events of the session.
  std::vector<content> static_contents = {};
  /// Tools that the model may call. Their names are unique in the list, and
  /// none is `transfer_to_agent`, `finish_task` or `adk_request_confirmation`.
  std::vector<tool> tools = {};
  /// Sets whose tools the model may call, too. A tool whose name another tool
  /// before it has is not offered: `tools` come first, then the sets in order.
  /// If a set fails, the run fails with its error.
  std::vector<toolset_ptr> toolsets = {};
  /// Tools that the model's vendor runs on its servers. Their names are unique,
  /// also among `tools`. An agent is refused if the model does not have one of
  /// them, or cannot use them beside the agent's functions: `tools`,
  /// `toolsets`, sub-agents, `transfer_to_agent` and `finish_task`.
  std::vector<vendor_tool> vendor_tools = {};
  /// State key of any scope that receives the text of the final response, or
  /// its JSON value with an `output_schema`; in mode `task`, the result of the
  /// task. Empty: none.
  std::string output_key = {};
  /// Schema of the final response. Its text is parsed as JSON; if it does not
  /// fit, the agent fails with `errc::model_failed`. An empty text passes. In
  /// mode `task` it is the schema of the arguments of `finish_task`.
  std::optional<json_schema> output_schema = {};
  /// Schema of the arguments, if the agent is a tool of another one, also by
  /// its mode.
  std::optional<json_schema> input_schema = {};
  /// The vendor's generation config in its wire form: `{"temperature": number,
  /// "maxOutputTokens": integer, …}`. Tools, instruction and response schema
  /// have fields of their own.
  json generation_config = empty_object();
  /// True if the model may not hand over to the parent agent.
  bool disallow_transfer_to_parent = false;
  /// True if the model may not hand over to the parent's other sub-agents.
  bool disallow_transfer_to_peers = false;
  /// Part of the history that the model sees.
  enum include_contents include_contents = include_contents::all;
  /// Limit for `include_contents::all`. Of the visible events before the run's
  /// message, the model sees only those among the newest `contents_max` events,
  /// from the first one on that another author wrote. Later events are always
  /// included. Unset: no limit; 0 is refused.
  std::optional<std::uint64_t> contents_max = {};
  /// Callbacks before the agent, in order until one answers. A paused agent
  /// that continues does not call them again.
  std::vector<agent_callback> before_agent = {};
  /// Callbacks after the agent, in order until one answers. An agent that
  /// pauses or fails does not call them.
  std::vector<agent_callback> after_agent = {};
  /// Callbacks of each list are called in order until one answers.
  std::vector<before_model_callback> before_model = {};
  /// Callbacks after each answer of the model or its replacement.
  std::vector<after_model_callback> after_model = {};
  /// Callbacks after a failed call of the model. Cancellation and a limit of
  /// the run (`errc::limit_exceeded`) do not call them.
  std::vector<model_error_callback> on_model_error = {};
  /// Callbacks before each call of a tool.
  std::vector<before_tool_callback> before_tool = {};
  /// Callbacks after each result of a tool or its replacement.
  std::vector<after_tool_callback> after_tool = {};
  /// Callbacks after a failed call of a tool, before those of `after_tool`.
  std::vector<tool_error_callback> on_tool_error = {};
};

/// Options of an agent that runs its sub-agents in order (`sequential`).
struct sequential_options {
  /// Identifier; unique in the tree and not `user`.
  std::string name = {};
  /// Text for models that may hand over to the agent or call it as a tool.
  std::string description = {};
  /// Callbacks before the agent, in order until one answers.
  std::vector<agent_callback> before_agent = {};
  /// Callbacks after the agent, in order until one answers.
  std::vector<agent_callback> after_agent = {};
};

/// Options of an agent that repeats its sub-agents (`loop`).
struct loop_options {
  /// Identifier; unique in the tree and not `user`.
  std::string name = {};
  /// Text for models that may hand over to the agent or call it as a tool.
  std::string description = {};
  /// Unset: runs until a sub-agent escalates. 0 is refused.
  std::optional<std::uint64_t> max_iterations = {};
  /// Callbacks before the agent, in order until one answers.
  std::vector<agent_callback> before_agent = {};
  /// Callbacks after the agent, in order until one answers.
  std::vector<agent_callback> after_agent = {};
};

/// Effect of a failed lane on the parallel agent. With `collect` and
/// `quorum` the failed lane leaves an event by its agent with `errorCode`
/// and `errorMessage`.
enum class lane_failures : std::uint8_t {
  /// The other lanes are cancelled and awaited. The parallel agent fails with
  /// one error that names every failed lane.
  fail_fast,
  /// The other lanes continue, and the parallel agent succeeds.
  collect,
  /// The parallel agent succeeds as soon as `quorum` lanes have, and fails as
  /// soon as that is impossible; the other lanes are cancelled and awaited.
  quorum,
};

/// Options of an agent that runs its sub-agents at the same time (`parallel`).
struct parallel_options {
  /// Identifier; unique in the tree and not `user`.
  std::string name = {};
  /// Text for models that may hand over to the agent or call it as a tool.
  std::string description = {};
  /// Lanes that run at the same time; unset: all. `run_options::lanes_max`
  /// limits every value.
  std::optional<std::size_t> lanes_max = {};
  /// Effect of a failed lane on the agent.
  lane_failures on_failure = lane_failures::fail_fast;
  /// For `lane_failures::quorum`: from 1 to the number of lanes.
  std::size_t quorum = 0;
  /// Time limit of each lane, from its start. After it, the lane is cancelled
  /// and fails with `errc::deadline_exceeded`. Unset: none.
  std::optional<std::chrono::milliseconds> lane_timeout = {};
  /// Each lane gets its own copy of `temp:`, which is dropped when the
  /// lane ends.
  bool isolate_temp = false;
  /// Callbacks before the agent, in order until one answers.
  std::vector<agent_callback> before_agent = {};
  /// Callbacks after the agent, in order until one answers.
  std::vector<agent_callback> after_agent = {};
};

/// Runs one agent for each element of a list, each on a lane of its own. The
/// lane has its own copy of `temp:`, with the element under `temp:item` and its
/// index (from 0) under `temp:index`. The lane's result is the value that the
/// agent leaves under `temp:result`, or else the output of a workflow, or its
/// last text.
struct map_options {
  /// Identifier; unique in the tree and not `user`.
  std::string name = {};
  /// Text for models that may hand over to the agent or call it as a tool.
  std::string description = {};
  /// State key of any scope that holds the list. A missing key counts as an
  /// empty list; another type fails with `errc::type_error`.
  std::string items_key = {};
  /// State key of any scope that receives the results, in the order of the
  /// elements; null for a lane without a result. Empty: none.
  std::string output_key = {};
  /// Maximum number of lanes at the same time, at least 1. Unset: no limit.
  std::optional<std::size_t> lanes_max = {};
  /// Effect of a failed lane on the agent.
  lane_failures on_failure = lane_failures::fail_fast;
  /// For `lane_failures::quorum`: above 0. A quorum above the number of
  /// elements cannot be reached.
  std::size_t quorum = 0;
  /// Time limit of each lane from its start, above 0. Unset: no limit.
  std::optional<std::chrono::milliseconds> lane_timeout = {};
  /// Callbacks before the agent, in order until one answers.
  std::vector<agent_callback> before_agent = {};
  /// Callbacks after the agent, in order until one answers.
  std::vector<agent_callback> after_agent = {};
};

/// Options of an agent that runs a coroutine of the user's (`custom`).
struct custom_options {
  /// Identifier; unique in the tree and not `user`.
  std::string name = {};
  /// Text for models that may hand over to the agent or call it as a tool.
  std::string description = {};
  /// Body of the agent. An empty one is refused.
  agent_function run = {};
  /// The part of the history that the agent's context shows. A run waits until
  /// these events are in memory, and keeps no older ones for this agent.
  history_extent reads = history_extent::all();
  /// Callbacks before the agent, in order until one answers.
  std::vector<agent_callback> before_agent = {};
  /// Callbacks after the agent, in order until one answers.
  std::vector<agent_callback> after_agent = {};
};

/// A workflow with its graph checked, as `workflow`
/// (agents/workflow.hpp) makes it. Its agents are the sub-agents.
struct compiled_workflow {
  /// Identifier; unique in the tree and not `user`.
  std::string name = {};
  /// Text for models that may hand over to the agent or call it as a tool.
  std::string description = {};
  /// The nodes and edges; never null.
  std::shared_ptr<const workflow_graph> graph = {};
  /// As in `workflow_options`.
  std::optional<std::size_t> lanes_max = {};
  /// As in `workflow_options`.
  std::string output_key = {};
  /// As in `workflow_options`.
  std::vector<agent_callback> before_agent = {};
  /// As in `workflow_options`.
  std::vector<agent_callback> after_agent = {};
};

/// An immutable description of an agent and its sub-agents. Copies share
/// it. Thread-safe.
class agent {
public:
  /// Options of one kind. The alternative tells the kind of the agent.
  using body = std::variant<llm_options,
                            sequential_options,
                            parallel_options,
                            map_options,
                            loop_options,
                            custom_options,
                            compiled_workflow>;

  /// Name of the agent, from its options.
  const std::string& name() const noexcept;
  /// Description of the agent, from its options; may be empty.
  const std::string& description() const noexcept;

  /// The sub-agents, in order.
  const std::vector<agent>& sub_agents() const noexcept;

  /// Options of the agent. The alternative tells its kind.
  const body& kind() const noexcept;

  /// Returns true if an LLM agent in the tree has sub-agents, to which it may
  /// hand over or which are its tools.
  bool transfers() const noexcept;

  /// Names of the agents below this one that are in mode `task`; null if there
  /// is none.
  const std::shared_ptr<const std::vector<std::string>>&
  task_names() const noexcept;

  /// The part of the history that the agent and its sub-agents read. It has to
  /// be in memory before a run begins. An LLM agent reads the events that its
  /// model sees, a custom agent those of `custom_options::reads`; the other
  /// kinds read nothing themselves.
  const history_extent& reads() const noexcept;

  /// The part of the history that the agent itself reads, without
  /// its sub-agents.
  const history_extent& reads_itself() const noexcept;

  /// Callbacks before the agent, from its options.
  const std::vector<agent_callback>& before_agent() const noexcept;
  /// Callbacks after the agent, from its options.
  const std::vector<agent_callback>& after_agent() const noexcept;

  /// A copy in which every LLM agent of the tree has another model, which must
  /// not be null. Throws `errc::invalid_argument` if that model refuses their
  /// `vendor_tools`.
  agent with_model(const model_ptr& replacement) const;

  /// Returns true if both share one description. Equal descriptions are not
  /// enough.
  friend bool operator==(const agent&, const agent&) = default;

private:
  friend agent make_agent(body, std::vector<agent>);

  struct description_data;

  explicit agent(std::shared_ptr<const description_data> data)
    : data_(std::move(data)) {}

  std::shared_ptr<const description_data> data_;
};

/// Makes an agent of any kind. This and the functions below throw
/// `errc::invalid_argument` for:
/// - a name that is not an identifier, is `user`, or occurs twice in the tree;
/// - an LLM agent without a model, or with one that refuses its `vendor_tools`;
///   two tools of one name, or a tool with a reserved name; a bad `output_key`;
///   a `generation_config` that is no object or sets tools, the system
///   instruction or the response schema; a `contents_max` of 0 or together with
///   another `include_contents`;
/// - `max_iterations` or `lanes_max` of 0, a `lane_timeout` that is not above
///   0, a quorum that cannot be reached, or one without
///   `lane_failures::quorum`;
/// - a tool named `finish_task`; a sub-agent in mode `task` or `single_turn`
///   whose name one of the agent's tools has, or whose `input_schema` describes
///   no object; an agent in mode `task` below one that is no LLM agent, or
///   directly below one in mode `single_turn`; a sub-agent in mode `chat`, or
///   of another kind, below an agent in mode `task` or `single_turn`;
/// - a map without exactly one sub-agent, or with a bad `items_key` or
///   `output_key`;
/// - a custom agent without a function, and a workflow without a graph: make
///   workflows with `workflow`.
agent make_agent(agent::body kind, std::vector<agent> sub_agents);

/// An agent that asks a model, runs the tools that the model calls, and
/// repeats this until the model has answered. The model may hand over to
/// the sub-agents, which then answer in its place, and they to it and to
/// each other.
agent llm(llm_options options, std::vector<agent> sub_agents = {});

/// An agent that runs its sub-agents in order, in the same invocation. It does
/// not stop when one escalates.
agent sequential(sequential_options options, std::vector<agent> sub_agents);

/// Makes a sequential agent with default options.
// A template, since g++ would also accept `{.name = …}` as a string.
template <std::convertible_to<std::string> Name>
agent sequential(Name&& name, std::vector<agent> sub_agents) {
  return sequential(
    sequential_options{.name = std::string(std::forward<Name>(name))},
    std::move(sub_agents));
}

/// An agent that runs its sub-agents at the same time, each on its own lane
/// and branch.
agent parallel(parallel_options options, std::vector<agent> sub_agents);

/// Makes a parallel agent with default options.
template <std::convertible_to<std::string> Name>
agent parallel(Name&& name, std::vector<agent> sub_agents) {
  return parallel(
    parallel_options{.name = std::string(std::forward<Name>(name))},
    std::move(sub_agents));
}

/// An agent that runs `which` for all elements of a list at the same time, each
/// on its own lane and branch.
agent map(map_options options, agent which);

/// An agent that runs its sub-agents in order, again and again, until
/// one escalates (which also ends all enclosing loops) or
/// `max_iterations` is reached.
agent loop(loop_options options, std::vector<agent> sub_agents);

/// Makes a tool named `exit_loop`, without parameters. The agent that calls
/// it escalates, which ends the loop that it runs in. Follows ADK's tool of
/// that name.
tool exit_loop();

/// An agent that runs a coroutine of the user's. An exception other than
/// `troupe::error` becomes `errc::callback_failed`.
agent custom(std::string name,
             agent_function run,
             std::vector<agent> sub_agents = {});
/// Makes a custom agent from all of its options.
agent custom(custom_options options, std::vector<agent> sub_agents = {});

} // namespace troupe
