// Functions of the user's that run before and after agents, models and tools.
//
// Callbacks of one place share a context: what they write travels in one event.
// Those of agents and models run on the run's lane, so they must not block:
// what takes time is a coroutine. Those of tools run where the tool runs.

#pragma once

#include "troupe/agents/tool.hpp"
#include "troupe/contexts/callback_context.hpp"
#include "troupe/contexts/task.hpp"
#include "troupe/models/model.hpp"

#include <functional>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace troupe {

/// A function or a coroutine that may answer in the place of what it is called
/// around: it returns nothing, a `std::optional<Answer>`, or a task of one.
/// What it throws other than `troupe::error` is `errc::callback_failed`, and
/// ends the agent.
template <class Answer, class... Arguments>
class callback {
public:
  using maybe = std::optional<Answer>;
  using function = std::function<maybe(Arguments...)>;
  using coroutine = std::function<task<maybe>(Arguments...)>;

  /// None.
  callback() = default;

  template <class Callable>

  requires(
    std::is_invocable_v<
      Callable&,
      Arguments...> && !std::is_same_v<std::remove_cvref_t<Callable>, callback>)
    callback(Callable called) {
    using returned = std::invoke_result_t<Callable&, Arguments...>;
    if constexpr (std::is_same_v<returned, task<maybe>>)
      coroutine_ = std::move(called);
    else if constexpr (std::is_void_v<returned>)
      function_ =
        [called = std::move(called)](Arguments... arguments) mutable -> maybe {
        called(arguments...);
        return std::nullopt;
      };
    else
      function_ = std::move(called);
  }

  explicit operator bool() const noexcept { return function_ || coroutine_; }

  /// One of them is set, unless there is none.
  const function& plain() const noexcept { return function_; }

  const coroutine& suspending() const noexcept { return coroutine_; }

private:
  function function_;
  coroutine coroutine_;
};

/// Before: content takes the place of the agent, whose body and after
/// callbacks do not run. After: content is said behind the agent's own. What is
/// written goes into an event of its own, with or without content.
using agent_callback = callback<content, callback_context&>;

/// May change the request. An answer takes the place of the model's, and does
/// not count as a call. What model callbacks write goes into the event of the
/// answer; if there is none, it is discarded.
using before_model_callback
  = callback<model_response, callback_context&, model_request&>;

/// May change the answer, or give another one. Streamed pieces pass by.
using after_model_callback
  = callback<model_response, callback_context&, model_response&>;

/// An answer takes the place of the failure.
using model_error_callback = callback<model_response,
                                      callback_context&,
                                      const model_request&,
                                      const error&>;

/// May change the arguments, which are checked after it. A result takes the
/// place of the tool's. What tool callbacks write goes along with what the tool
/// writes, and is discarded with it.
using before_tool_callback = std::function<std::optional<json>(
  const tool& which, json& args, tool_context& context)>;

/// Gets the result, whoever it is from, and may give another one.
using after_tool_callback
  = std::function<std::optional<json>(const tool& which,
                                      const json& args,
                                      tool_context& context,
                                      const json& result)>;

/// A result takes the place of the failure.
using tool_error_callback
  = std::function<std::optional<json>(const tool& which,
                                      const json& args,
                                      tool_context& context,
                                      const error& failure)>;

} // namespace troupe
