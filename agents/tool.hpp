// A tool: its description for the model, and the function that runs when the
// model calls it.

#pragma once

#include "troupe/agents/json_schema.hpp"
#include "troupe/contexts/async_function.hpp"
#include "troupe/contexts/tool_context.hpp"
#include "troupe/core/json.hpp"
#include "troupe/core/value.hpp"
#include "troupe/models/model.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace troupe {

class agent;
class turnstile;

namespace detail {

// The schema of any object. A function, as a list in braces instantiates much
// of nlohmann_json in each source that includes this.
json any_object();

template <>
struct wanted<json(const json&, tool_context&)> {
  template <bool Fits>
  static constexpr void check() {
    static_assert(
      Fits,
      "the function of a tool is [](const troupe::json& args, "
      "troupe::tool_context& context) -> troupe::json { ... }; for a struct of "
      "parameters use troupe::function_tool");
  }
};

template <>
struct wanted<void(readonly_context&, model_request&)> {
  template <bool Fits>
  static constexpr void check() {
    static_assert(Fits,
                  "the preparation of a request is "
                  "[](troupe::readonly_context& context, "
                  "troupe::model_request& request) { ... }");
  }
};

template <>
struct wanted<bool(const json&)> {
  template <bool Fits>
  static constexpr void check() {
    static_assert(Fits,
                  "a function that decides about a confirmation is "
                  "[](const troupe::json& args) -> bool { ... }");
  }
};

} // namespace detail

/// The function of a tool: gets the arguments, a JSON object, and returns any
/// JSON. An object goes to the model as it is; any other value as
/// `{"result": …}`. Arguments and context live until it has ended.
///
/// A plain function runs on a thread of the tool pool, never on the
/// runtime's scheduler, so it may block. A coroutine must not block: it
/// starts on a thread of the tool pool, and continues on the thread that
/// completes its await.
using tool_function
  = async_function<json(const json& args, tool_context& context)>;

/// Changes the request of an agent before its model and the callbacks before
/// the model get it, for example to tell of files that a tool can load. Runs on
/// the run's lane and must not block; a coroutine can wait there. An exception
/// ends the agent; if it is not a `troupe::error`, it becomes
/// `errc::callback_failed`.
using request_preparation
  = async_function<void(readonly_context& context, model_request& request)>;

/// Effect of a failed tool: it threw, ran out of time, or got arguments
/// that its schema does not allow. State that it has written is discarded
/// in any case.
enum class tool_failure : std::uint8_t {
  tell_model, ///< The model gets `{"error": …}` and continues.
  end_run,    ///< The agent ends with the error.
};

/// Rule that says which calls the user has to allow: all, none, or those whose
/// arguments fit a predicate. The predicate must not block.
class confirmation_rule {
public:
  /// Decides from the arguments of a call; true asks the user.
  using predicate = plain_function<bool(const json& args)>;

  /// Makes a rule that holds always or never.
  confirmation_rule(bool always = false)
    : needed_(always ? [](const json&) { return true; } : predicate()) {}

  /// Makes a rule that depends on the arguments.
  template <class Predicate>

  requires std::is_constructible_v<predicate, Predicate>
  confirmation_rule(Predicate needed) : needed_(std::move(needed)) {}

  /// Returns true if a call with these arguments needs the user's permission.
  bool holds_for(const json& args) const { return needed_ && needed_(args); }

  /// False if the rule never holds.
  bool can_hold() const noexcept { return static_cast<bool>(needed_); }

private:
  predicate needed_;
};

/// Description, function and limits of a tool.
struct tool_options {
  /// The name that the model uses: letters, digits, `_` and `-`, the first one
  /// a letter or `_`.
  std::string name = {};
  /// Purpose of the tool, as text for the model.
  std::string description = {};
  /// JSON Schema of the arguments; must describe an object. Arguments that do
  /// not fit never reach the tool.
  json parameters = detail::any_object();
  /// True if description and parameters come from a server that others run.
  /// Models then get the descriptions between markers, with an explanation in
  /// the system instruction. Default: they are sent without markers.
  bool is_described_by_server = false;
  /// Function of the tool. One of `run` and `as_agent` is set, or only
  /// `prepare`.
  tool_function run = {};
  /// Agent that runs in place of a function; set by `agent_tool`.
  std::shared_ptr<const agent> as_agent = {};
  /// True if that agent runs in the session of the caller, as a sub-agent in
  /// mode `single_turn` does. The runtime sets it; leave it false.
  bool runs_in_session = false;
  /// Time limit of one call. After it, the tool is asked to stop, and the model
  /// gets an error. Unset: that of the run.
  std::optional<std::chrono::milliseconds> timeout = {};
  /// Limit of concurrent calls, over all runs; further calls wait in order.
  /// Unset: no limit.
  std::optional<std::size_t> calls_max = {};
  /// Effect of a failed call on the agent.
  tool_failure on_failure = tool_failure::tell_model;
  /// Set for a function that starts work and returns null, because the result
  /// comes from outside. The run then pauses. The run whose message brings a
  /// `function_response` with the call's id continues. Any other returned value
  /// is an ordinary result.
  bool long_running = false;
  /// Before a call that needs a confirmation, the run pauses with a question to
  /// the user. The run whose message brings the answer continues (see
  /// docs/agents.md). A rejected call never reaches the tool. Callbacks before
  /// the tool run again after the answer.
  confirmation_rule require_confirmation = {};
  /// The tool's result is the agent's answer: the model is not asked again.
  bool skip_summarization = false;
  /// Called before each request to the model of an agent that has the tool. If
  /// it stands alone, without `run` and `as_agent`, the model does not know the
  /// tool and cannot call it.
  request_preparation prepare = {};
};

/// An immutable description; copies share it. Thread-safe.
class tool {
public:
  /// Throws `errc::invalid_argument` for a bad name, a schema that is invalid
  /// or does not describe an object, both of `run` and `as_agent`, none of them
  /// and of `prepare`, a long-running tool that is an agent, a `calls_max` of
  /// 0, and a `timeout` that is not above 0.
  explicit tool(tool_options options);

  /// Name that the model uses.
  const std::string& name() const noexcept;
  /// Text for the model; may be empty.
  const std::string& description() const noexcept;
  /// JSON Schema of the arguments.
  const json& parameters() const noexcept;
  /// Name, description and parameters as a model gets them. Copies of the
  /// parameters cost O(1).
  const tool_declaration& declaration() const noexcept;
  /// Options as given to the constructor.
  const tool_options& options() const noexcept;
  /// False if the tool only prepares requests.
  bool can_be_called() const noexcept;

  /// Fails with `errc::invalid_argument` if the arguments do not fit; the
  /// message names the paths.
  result<void> check(const json& args) const;

  /// The limiter of concurrent calls; null without a limit.
  const std::shared_ptr<turnstile>& entrance() const noexcept;

private:
  struct description_data;

  std::shared_ptr<const description_data> data_;
};

/// Tools by name, for agent files.
using tool_registry = std::map<std::string, tool, std::less<>>;

/// Makes a registry of the given tools. Throws `errc::invalid_argument` if two
/// have the same name.
tool_registry make_registry(const std::vector<tool>& tools);

} // namespace troupe
