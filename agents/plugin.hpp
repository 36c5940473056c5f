// A plugin: functions of the user's that run around everything that a runtime
// does, whichever agent does it.
//
// Plugins stand in the order in which the runtime was given them, and before
// the callbacks of the agents. The first answer at a place ends the list there:
// later plugins and the agent's own callbacks are not called.

#pragma once

#include "troupe/agents/callback.hpp"
#include "troupe/core/event.hpp"
#include "troupe/core/key.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// Any of the functions may be missing. They may be called from several threads
/// at the same time, for different runs and lanes. What one throws ends what it
/// was called around, as `errc::callback_failed` that names plugin and place.
struct plugin {
  /// Not empty; unique in a runtime.
  std::string name = {};

  // -- a run -----------------------------------------------------------------

  /// Before the message of a run is appended, on the thread that starts the
  /// run. What it returns takes the place of the message.
  std::function<std::optional<content>(const session_key& session,
                                       const content& message)>
    on_user_message = {};
  /// When the message has been appended. Content is said by `model` instead of
  /// everything else of the run.
  callback<content, callback_context&> before_run = {};
  /// When all agents have ended well, or wait for an answer from outside. All
  /// plugins are called.
  std::function<void(callback_context&)> after_run = {};
  /// When the run fails, unless it was cancelled. All plugins are called.
  std::function<void(const readonly_context&, const error&)> on_run_error = {};

  /// Before an event of an agent is committed, or kept by an agent that is a
  /// tool; in the order of the commits of the run. What it returns takes its
  /// place, but for author, branch, ids and what says that a run waits.
  /// Streamed pieces pass by.
  std::function<std::optional<event>(const session_key& session,
                                     const event& said)>
    on_event = {};

  // -- agents, models and tools: as the callbacks of agents ------------------

  agent_callback before_agent = {};
  agent_callback after_agent = {};
  /// When an agent fails, unless it was cancelled. All plugins are called.
  std::function<void(const readonly_context&, const error&)> on_agent_error
    = {};
  before_model_callback before_model = {};
  after_model_callback after_model = {};
  model_error_callback on_model_error = {};
  before_tool_callback before_tool = {};
  after_tool_callback after_tool = {};
  tool_error_callback on_tool_error = {};

  // -- the end ---------------------------------------------------------------

  /// When the runtime has shut down, on the thread that does that, once.
  std::function<void()> close = {};
};

/// Fails with `errc::invalid_argument` on a name that is empty or comes twice.
result<void> check_plugins(const std::vector<plugin>& plugins);

} // namespace troupe
