// A tool: what the model is told about it, and what runs when the model calls
// it.

#pragma once

#include "troupe/agents/json_schema.hpp"
#include "troupe/agents/turnstile.hpp"
#include "troupe/contexts/task.hpp"
#include "troupe/contexts/tool_context.hpp"
#include "troupe/core/json.hpp"

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

/// Runs on a thread of its own pool, never on the runtime's scheduler, so it
/// may block. Gets the arguments, an object, and gives any JSON; an object goes
/// to the model as it is, anything else as `{"result": …}`.
using tool_function
  = std::function<json(const json& args, tool_context& context)>;

/// The same as a coroutine, for what waits without holding a thread. It must
/// not block: it starts on a thread of that pool, and goes on where what it
/// awaited ended. Arguments and context live as long as it does.
using tool_coroutine
  = std::function<task<json>(const json& args, tool_context& context)>;

/// What becomes of a tool that failed: it threw, ran out of time, or was called
/// in a way that its schema does not allow. What it recorded is discarded in
/// any case.
enum class tool_failure : std::uint8_t {
  tell_model, ///< The model gets `{"error": …}` and goes on.
  end_run,    ///< The agent ends with the error.
};

/// Whether the user has to allow a call: always, never, or as a function of its
/// arguments says, which must not block.
class confirmation_rule {
public:
  using predicate = std::function<bool(const json& args)>;

  confirmation_rule(bool always = false)
    : needed_(always ? [](const json&) { return true; } : predicate()) {}

  template <class Predicate>

  requires std::is_invocable_r_v<bool, Predicate&, const json&>
  confirmation_rule(Predicate needed) : needed_(std::move(needed)) {}

  bool holds_for(const json& args) const { return needed_ && needed_(args); }

  bool can_hold() const noexcept { return static_cast<bool>(needed_); }

private:
  predicate needed_;
};

struct tool_options {
  /// An identifier; how the model names the tool.
  std::string name = {};
  std::string description = {};
  /// JSON Schema of the arguments, an object schema. Arguments that do not fit
  /// never reach the tool.
  json parameters = {{"type", "object"}, {"properties", json::object()}};
  /// One of the three; an agent comes from `agent_tool`.
  tool_function run = {};
  tool_coroutine coroutine = {};
  std::shared_ptr<const agent> as_agent = {};
  /// For one call; then it is asked to stop, and the model is told. Unset:
  /// none.
  std::optional<std::chrono::milliseconds> timeout = {};
  /// Calls at the same time, over all runs; others wait in order. Unset: as
  /// many as there are.
  std::optional<std::size_t> calls_max = {};
  tool_failure on_failure = tool_failure::tell_model;
  /// The function only starts the work, and gives null: the run then ends, and
  /// goes on in the run whose message brings the `function_response` with the
  /// id of the call. Anything else that it gives is an ordinary result.
  bool long_running = false;
  /// Before a call that needs it, the run ends with a question to the user, and
  /// goes on in the run whose message brings the answer (see
  /// docs/agents.md). A call that the user rejects never reaches the tool.
  /// Callbacks before the tool run again when the user has answered.
  confirmation_rule require_confirmation = {};
  /// The result is the answer: the model is not asked again.
  bool skip_summarization = false;
};

/// An immutable value; copies share the function.
class tool {
public:
  /// Throws `errc::invalid_argument` on a bad name, a schema that is none or is
  /// not of an object, a missing function, and a limit or a time of 0.
  explicit tool(tool_options options);

  const std::string& name() const noexcept;
  const std::string& description() const noexcept;
  const json& parameters() const noexcept;
  const tool_options& options() const noexcept;

  /// Fails with `errc::invalid_argument` on arguments that do not fit, and says
  /// where.
  result<void> check(const json& args) const;

  /// Where its calls wait for each other; null without a limit.
  const std::shared_ptr<turnstile>& entrance() const noexcept;

private:
  struct description_data;

  std::shared_ptr<const description_data> data_;
};

/// Tools by name, as agent files refer to them.
using tool_registry = std::map<std::string, tool, std::less<>>;

/// A registry of the given tools. Throws `errc::invalid_argument` if a name
/// comes twice.
tool_registry make_registry(const std::vector<tool>& tools);

} // namespace troupe
