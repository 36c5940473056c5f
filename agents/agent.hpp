// An agent: an immutable description of what to do. Running it is the business
// of actors.
//
// Five kinds, one type: an LLM, a sequence, a fan-out, a loop, or a coroutine
// of the user's.

#pragma once

#include "troupe/agents/callback.hpp"
#include "troupe/agents/tool.hpp"
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

/// The body of a custom agent.
using agent_run = task<>;
using agent_function = std::function<agent_run(invocation_context&)>;

/// Makes the instruction of one model call; used as it is, without replacing
/// placeholders. What it throws is `errc::callback_failed`. The first must not
/// block; the second is a coroutine.
using instruction_provider
  = std::function<std::string(const readonly_context&)>;
using instruction_coroutine
  = std::function<task<std::string>(const readonly_context&)>;

/// A template (see `inject_session_state`) or a provider.
class instruction {
public:
  instruction() = default;

  instruction(const char* text) : source_(std::string(text)) {}

  instruction(std::string text) : source_(std::move(text)) {}

  instruction(instruction_provider provider) : source_(std::move(provider)) {}

  instruction(instruction_coroutine provider) : source_(std::move(provider)) {}

  template <class Function>

  requires std::is_invocable_r_v<std::string, Function, const readonly_context&>
  instruction(Function provider)
    : source_(instruction_provider(std::move(provider))) {}

  template <class Function>

  requires std::is_same_v<
    std::invoke_result_t<Function&, const readonly_context&>,
    task<std::string>>
  instruction(Function provider)
    : source_(instruction_coroutine(std::move(provider))) {}

  using source_type
    = std::variant<std::string, instruction_provider, instruction_coroutine>;

  const source_type& source() const noexcept { return source_; }

private:
  source_type source_;
};

/// How much of the session's history the model sees.
enum class include_contents : std::uint8_t {
  all,  ///< What is visible on the agent's branch (wire name: `default`).
  none, ///< The current turn: from the latest event of the user or another
        ///< agent.
  since_summary, ///< What the newest summary says (agents/summary.hpp), and the
                 ///< events that it does not stand for; without one the same
                 ///< as `all`.
};

// What every kind of agent has: `name` is an identifier, unique in the whole
// tree, not `user`; `before_agent` and `after_agent` are called in order until
// one answers.

struct llm_options {
  std::string name = {};
  std::string description = {};
  model_ptr model = {};
  /// Resolved for each model call.
  troupe::instruction instruction = {};
  /// Of the root: stands before the instructions of all agents below it, with
  /// the state that those see.
  troupe::instruction global_instruction = {};
  /// Never changed, so that a vendor can keep it: no placeholders. With it,
  /// `instruction` goes into the conversation instead of the system
  /// instruction.
  std::string static_instruction = {};
  std::vector<tool> tools = {};
  /// State key, any scope, that receives the text of the final response, or its
  /// value with an `output_schema`; empty: none.
  std::string output_key = {};
  /// What the final response has to be: its text is read as JSON, and what does
  /// not fit is `errc::model_failed`. An empty text passes.
  std::optional<json_schema> output_schema = {};
  /// Of the arguments, when the agent is a tool of another one.
  std::optional<json_schema> input_schema = {};
  /// Wire fields of the vendor's generation config (`temperature`,
  /// `maxOutputTokens`, …), an object; tools, instruction and response schema
  /// have fields of their own.
  json generation_config = json::object();
  /// Whether the model may hand over to the agent above, and to those beside.
  bool disallow_transfer_to_parent = false;
  bool disallow_transfer_to_peers = false;
  enum include_contents include_contents = include_contents::all;
  /// With `include_contents::all`: of the events before the message of the run
  /// the model sees what is visible among so many, the newest ones, from the
  /// first that is not the agent's own. What came since it always sees. Unset:
  /// no limit; 0 is refused.
  std::optional<std::uint64_t> contents_max = {};
  std::vector<agent_callback> before_agent = {};
  std::vector<agent_callback> after_agent = {};
  /// Each list in order until one answers.
  std::vector<before_model_callback> before_model = {};
  std::vector<after_model_callback> after_model = {};
  std::vector<model_error_callback> on_model_error = {};
  std::vector<before_tool_callback> before_tool = {};
  std::vector<after_tool_callback> after_tool = {};
  std::vector<tool_error_callback> on_tool_error = {};
};

struct sequential_options {
  std::string name = {};
  std::string description = {};
  std::vector<agent_callback> before_agent = {};
  std::vector<agent_callback> after_agent = {};
};

struct loop_options {
  std::string name = {};
  std::string description = {};
  /// Unset: until a sub-agent escalates. 0 is refused.
  std::optional<std::uint64_t> max_iterations = {};
  std::vector<agent_callback> before_agent = {};
  std::vector<agent_callback> after_agent = {};
};

/// What a failed lane comes to. With the last two it leaves an event by its
/// agent with `errorCode` and `errorMessage`.
enum class lane_failures : std::uint8_t {
  fail_fast, ///< The other lanes are cancelled and awaited; one error names
             ///< every failed lane.
  collect,   ///< The others go on, and the agent ends well.
  quorum,    ///< It ends well as soon as `quorum` lanes have, and fails as soon
             ///< as that cannot be; the rest is then cancelled and awaited.
};

struct parallel_options {
  std::string name = {};
  std::string description = {};
  /// Lanes that run at the same time; unset: all.
  std::optional<std::size_t> lanes_max = {};
  lane_failures on_failure = lane_failures::fail_fast;
  /// With `lane_failures::quorum`: from 1 to the number of lanes.
  std::size_t quorum = 0;
  /// Of one lane, from its start; then it is cancelled and has failed with
  /// `errc::deadline_exceeded`. Unset: none.
  std::optional<std::chrono::milliseconds> lane_timeout = {};
  /// Each lane has its own copy of `temp:`, which is dropped when it ends.
  bool isolate_temp = false;
  std::vector<agent_callback> before_agent = {};
  std::vector<agent_callback> after_agent = {};
};

/// One agent over a list that is known when it runs, an element per lane. A
/// lane has its own copy of `temp:`, with the element under `temp:item` and its
/// place under `temp:index`. Its result is what the agent leaves under
/// `temp:result`, else the text that it said last.
struct map_options {
  std::string name = {};
  std::string description = {};
  /// State key, any scope, of the list; a missing one is empty, and what is no
  /// list is `errc::type_error`.
  std::string items_key = {};
  /// State key, any scope, that receives the list of results in the order of
  /// the elements, null where a lane has none; empty: none.
  std::string output_key = {};
  /// As in `parallel_options`.
  std::optional<std::size_t> lanes_max = {};
  lane_failures on_failure = lane_failures::fail_fast;
  /// With `lane_failures::quorum`: above 0; more than there are elements cannot
  /// be reached.
  std::size_t quorum = 0;
  std::optional<std::chrono::milliseconds> lane_timeout = {};
  std::vector<agent_callback> before_agent = {};
  std::vector<agent_callback> after_agent = {};
};

struct custom_options {
  std::string name = {};
  std::string description = {};
  agent_function run = {};
  /// What its context shows of the session's history; a run does not wait for
  /// more, and keeps no more in memory.
  history_extent reads = history_extent::all();
  std::vector<agent_callback> before_agent = {};
  std::vector<agent_callback> after_agent = {};
};

class agent {
public:
  using body = std::variant<llm_options,
                            sequential_options,
                            parallel_options,
                            map_options,
                            loop_options,
                            custom_options>;

  const std::string& name() const noexcept;
  const std::string& description() const noexcept;

  /// In order; shared with every other user of the same agent.
  const std::vector<agent>& sub_agents() const noexcept;

  const body& kind() const noexcept;

  /// Whether an LLM agent in the tree has sub-agents, which it may hand over
  /// to.
  bool transfers() const noexcept;

  /// How much of the session's history it reads, with the agents below it: what
  /// has to be in memory before a run of it begins. LLM agents read what their
  /// models see, custom agents what they state; the others read nothing
  /// themselves.
  const history_extent& reads() const noexcept;

  /// The same without the agents below.
  const history_extent& reads_itself() const noexcept;

  const std::vector<agent_callback>& before_agent() const noexcept;
  const std::vector<agent_callback>& after_agent() const noexcept;

  /// The agent with another model in every LLM below it, itself included.
  agent with_model(const model_ptr& replacement) const;

  /// Whether both are the same description, not just equal.
  friend bool operator==(const agent&, const agent&) = default;

private:
  friend agent make_agent(body, std::vector<agent>);

  struct description_data;

  explicit agent(std::shared_ptr<const description_data> data)
    : data_(std::move(data)) {}

  std::shared_ptr<const description_data> data_;
};

/// Makes an agent of any kind. This and the functions below throw
/// `errc::invalid_argument` on a name that is no identifier or is `user`, on a
/// name that comes twice in the tree, on a bad `output_key`, and on what the
/// options exclude.
agent make_agent(agent::body kind, std::vector<agent> sub_agents);

/// Asks a model, runs the tools that it calls, and asks again until it has
/// answered. The model may hand over to the sub-agents, which then answer in
/// its place, and they to it and to each other.
agent llm(llm_options options, std::vector<agent> sub_agents = {});

/// Runs its sub-agents in order, in the same invocation. Does not stop when one
/// escalates.
agent sequential(sequential_options options, std::vector<agent> sub_agents);

// A template, since g++ would take `{.name = …}` for a string, too.
template <std::convertible_to<std::string> Name>
agent sequential(Name&& name, std::vector<agent> sub_agents) {
  return sequential(
    sequential_options{.name = std::string(std::forward<Name>(name))},
    std::move(sub_agents));
}

/// Runs its sub-agents at the same time, each on a lane and a branch of its
/// own.
agent parallel(parallel_options options, std::vector<agent> sub_agents);

template <std::convertible_to<std::string> Name>
agent parallel(Name&& name, std::vector<agent> sub_agents) {
  return parallel(
    parallel_options{.name = std::string(std::forward<Name>(name))},
    std::move(sub_agents));
}

/// Runs `which` for each element of a list at the same time, on lanes and
/// branches of their own.
agent map(map_options options, agent which);

/// Runs its sub-agents in order, again and again, until one escalates (which
/// also ends all enclosing loops) or `max_iterations` is reached.
agent loop(loop_options options, std::vector<agent> sub_agents);

/// Runs a coroutine of the user's. What it throws other than `troupe::error` is
/// `errc::callback_failed`.
agent custom(std::string name,
             agent_function run,
             std::vector<agent> sub_agents = {});
agent custom(custom_options options, std::vector<agent> sub_agents = {});

} // namespace troupe
