// A plugin: functions of the user's that are called around all work of a
// runtime, for every agent.
//
// Plugins are called in the order in which the runtime got them, and before the
// callbacks of the agents. At each hook the first answer counts: later plugins
// and the agent's own callbacks are not called.

#pragma once

#include "troupe/agents/callback.hpp"
#include "troupe/core/event.hpp"
#include "troupe/core/key.hpp"

#include <optional>
#include <string>
#include <vector>

namespace troupe {

namespace detail {

template <>
struct wanted<std::optional<content>(const session_key&, const content&)> {
  template <bool Fits>
  static constexpr void check() {
    static_assert(
      Fits,
      "on_user_message is [](const troupe::session_key& session, const "
      "troupe::content& message) -> std::optional<troupe::content> { ... }");
  }
};

template <>
struct wanted<std::optional<event>(const session_key&, const event&)> {
  template <bool Fits>
  static constexpr void check() {
    static_assert(
      Fits,
      "on_event is [](const troupe::session_key& session, const "
      "troupe::event& said) -> std::optional<troupe::event> { ... }");
  }
};

template <>
struct wanted<void(const session_key&, const event&)> {
  template <bool Fits>
  static constexpr void check() {
    static_assert(Fits,
                  "after_event is [](const troupe::session_key& session, const "
                  "troupe::event& said) { ... }");
  }
};

template <>
struct wanted<void(callback_context&)> {
  template <bool Fits>
  static constexpr void check() {
    static_assert(Fits,
                  "after_run is [](troupe::callback_context& context) { ... }");
  }
};

template <>
struct wanted<void(const readonly_context&, const error&)> {
  template <bool Fits>
  static constexpr void check() {
    static_assert(Fits,
                  "on_run_error and on_agent_error are [](const "
                  "troupe::readonly_context& context, const troupe::error& "
                  "failure) { ... }");
  }
};

} // namespace detail

/// All functions are optional. They may be called on several threads at the
/// same time, for different runs and lanes.
///
/// An exception ends the work around which the function was called. A
/// `troupe::error` is kept; any other exception becomes `errc::callback_failed`
/// with the names of plugin and hook. There are three special cases. First, an
/// exception around a tool fails the call of the tool, and
/// `tool_options::on_failure` decides about the agent: before the tool the
/// exception becomes `errc::tool_failed`, after it `errc::callback_failed`.
/// Second, an exception of `on_agent_error` or `on_run_error` only extends the
/// message of the error. Third, an exception of `after_event` becomes a warning
/// (`runtime_options::on_warning`), as the event is committed. `on_agent` must
/// not throw.
struct plugin {
  /// Not empty; unique in a runtime.
  std::string name = {};

  // -- runs -------------------------------------------------------------------

  /// Called before the message of a run is appended, on the thread that starts
  /// the run. A returned content replaces the message.
  plain_function<std::optional<content>(const session_key& session,
                                        const content& message)>
    on_user_message = {};
  /// Called after the message was appended. A returned content is emitted by
  /// author `model`, and the agents do not run.
  callback<content, callback_context&> before_run = {};
  /// Called when all agents have ended without failure, or wait for an answer
  /// from outside. All plugins are called.
  plain_function<void(callback_context&)> after_run = {};
  /// Called when the run has failed, unless it was cancelled. All plugins
  /// are called.
  plain_function<void(const readonly_context&, const error&)> on_run_error = {};

  /// Called before an event of an agent is committed, in the order of the run's
  /// commits; also for events of agents that are tools. The returned event
  /// replaces it; author, branch, ids and pause markers are kept. Not called
  /// for partial events.
  plain_function<std::optional<event>(const session_key& session,
                                      const event& said)>
    on_event = {};

  /// Called after an event of an agent was committed, before the caller of the
  /// run gets it. The event has its id. All plugins are called. Not called for
  /// partial events, events of agents that are tools, and events that the
  /// session had already. Must be short: the run waits for it.
  plain_function<void(const session_key& session, const event& said)>
    after_event = {};

  /// Called when an agent starts, and when it has ended, with or without
  /// failure. Must be short and must not throw.
  plain_function<void(std::string_view agent, bool started)> on_agent = {};

  // -- agents, models and tools: as in callback.hpp ---------------------------

  /// Runs before each agent.
  agent_callback before_agent = {};
  /// Runs after each agent.
  agent_callback after_agent = {};
  /// Called when an agent has failed, unless it was cancelled. All plugins
  /// are called.
  plain_function<void(const readonly_context&, const error&)> on_agent_error
    = {};
  /// Runs before each call of a model.
  before_model_callback before_model = {};
  /// Runs after each answer of a model or its replacement.
  after_model_callback after_model = {};
  /// Runs after a failed call of a model, except after cancellation
  /// and `errc::limit_exceeded`.
  model_error_callback on_model_error = {};
  /// Runs before each call of a tool.
  before_tool_callback before_tool = {};
  /// Runs after each result of a tool or its replacement.
  after_tool_callback after_tool = {};
  /// Runs after a failed call of a tool, before `after_tool`.
  tool_error_callback on_tool_error = {};

  // -- the end ----------------------------------------------------------------

  /// Called once, when the runtime has shut down, on the thread that shuts
  /// it down.
  plain_function<void()> close = {};
};

/// Fails with `errc::invalid_argument` if a name is empty or occurs twice.
result<void> check_plugins(const std::vector<plugin>& plugins);

} // namespace troupe
