// Callbacks: functions of the user's that run before and after agents, models
// and tools.
//
// Callbacks at the same point, such as before the model, share a context. The
// state that they write is committed in one event. Callbacks of agents and
// models run on the run's lane and must not block; a coroutine can wait there.
// Callbacks of tools run on the tool's thread.

#pragma once

#include "troupe/agents/tool.hpp"
#include "troupe/contexts/async_function.hpp"
#include "troupe/contexts/callback_context.hpp"
#include "troupe/models/model.hpp"

#include <optional>

namespace troupe {

namespace detail {

// The errors of callbacks of another shape. Each stands before the first use of
// its signature.

template <>
struct wanted<std::optional<content>(callback_context&)> {
  template <bool Fits>
  static constexpr void check() {
    static_assert(Fits,
                  "a callback around an agent or a run is "
                  "[](troupe::callback_context& context) { ... }; it returns "
                  "nothing or a std::optional<troupe::content>");
  }
};

template <>
struct wanted<std::optional<model_response>(callback_context&,
                                            model_request&)> {
  template <bool Fits>
  static constexpr void check() {
    static_assert(
      Fits,
      "a callback before a model is [](troupe::callback_context& context, "
      "troupe::model_request& request) { ... }; it returns nothing or a "
      "std::optional<troupe::model_response>");
  }
};

template <>
struct wanted<std::optional<model_response>(callback_context&,
                                            model_response&)> {
  template <bool Fits>
  static constexpr void check() {
    static_assert(
      Fits,
      "a callback after a model is [](troupe::callback_context& context, "
      "troupe::model_response& response) { ... }; it returns nothing or a "
      "std::optional<troupe::model_response>");
  }
};

template <>
struct wanted<std::optional<model_response>(
  callback_context&, const model_request&, const error&)> {
  template <bool Fits>
  static constexpr void check() {
    static_assert(
      Fits,
      "a callback after a failed model is [](troupe::callback_context& "
      "context, const troupe::model_request& request, const troupe::error& "
      "failure) { ... }; it returns nothing or a "
      "std::optional<troupe::model_response>");
  }
};

template <>
struct wanted<std::optional<json>(const tool&, json&, tool_context&)> {
  template <bool Fits>
  static constexpr void check() {
    static_assert(Fits,
                  "a callback before a tool is [](const troupe::tool& which, "
                  "troupe::json& args, troupe::tool_context& context) -> "
                  "std::optional<troupe::json> { ... }");
  }
};

template <>
struct wanted<std::optional<json>(
  const tool&, const json&, tool_context&, const json&)> {
  template <bool Fits>
  static constexpr void check() {
    static_assert(
      Fits,
      "a callback after a tool is [](const troupe::tool& which, const "
      "troupe::json& args, troupe::tool_context& context, const "
      "troupe::json& result) -> std::optional<troupe::json> { ... }");
  }
};

template <>
struct wanted<std::optional<json>(
  const tool&, const json&, tool_context&, const error&)> {
  template <bool Fits>
  static constexpr void check() {
    static_assert(
      Fits,
      "a callback after a failed tool is [](const troupe::tool& which, const "
      "troupe::json& args, troupe::tool_context& context, const "
      "troupe::error& failure) -> std::optional<troupe::json> { ... }");
  }
};

} // namespace detail

/// A function or a coroutine that may answer in place of the agent, model or
/// tool around which it is called. It returns nothing, a
/// `std::optional<Answer>`, or a task of one. An exception ends the agent; if
/// it is not a `troupe::error`, it becomes `errc::callback_failed`.
template <class Answer, class... Arguments>
using callback = async_function<std::optional<Answer>(Arguments...)>;

/// Called before or after an agent. Before: an answer replaces the agent, whose
/// body and after callbacks do not run. After: an answer is added after the
/// agent's own. State that it writes is committed in an event of its own, with
/// or without content.
using agent_callback = callback<content, callback_context&>;

/// Called before a model; may change the request. An answer replaces the
/// model's, and does not count as a model call. State that model callbacks
/// write is committed with the answer's event, and discarded if there is none.
using before_model_callback
  = callback<model_response, callback_context&, model_request&>;

/// Called after a model; may change or replace the answer. Not called for
/// partial answers.
using after_model_callback
  = callback<model_response, callback_context&, model_response&>;

/// Called when a model has failed, but not when the run was stopped or has
/// reached a limit. An answer replaces the failure.
using model_error_callback = callback<model_response,
                                      callback_context&,
                                      const model_request&,
                                      const error&>;

/// Called before a tool; may change the arguments, which are checked
/// afterwards. A result replaces the tool's; the arguments are not checked
/// then. State that tool callbacks write is committed or discarded together
/// with the tool's.
///
/// An exception fails the call. If this callback throws, the failure is treated
/// like one of the tool, and `tool_error_callback` is called. An exception of
/// the two callbacks below becomes `errc::callback_failed`. A `troupe::error`
/// keeps its code. `tool_options::on_failure` decides about the agent.
using before_tool_callback = plain_function<std::optional<json>(
  const tool& which, json& args, tool_context& context)>;

/// Called after a tool or its replacement; may replace the result.
using after_tool_callback
  = plain_function<std::optional<json>(const tool& which,
                                       const json& args,
                                       tool_context& context,
                                       const json& result)>;

/// Called when a tool has failed. A result replaces the failure.
using tool_error_callback
  = plain_function<std::optional<json>(const tool& which,
                                       const json& args,
                                       tool_context& context,
                                       const error& failure)>;

} // namespace troupe
