// An agent as a tool of another agent.

#pragma once

#include "troupe/agents/agent.hpp"

namespace troupe {

/// Options of a tool that is an agent, as a subset of `tool_options`.
struct agent_tool_options {
  /// The tool's result is the answer of the calling agent: its model is not
  /// asked again.
  bool skip_summarization = false;
  /// Time limit of one call, above 0. After it the agent is cancelled and the
  /// call fails. Unset: `run_options::tool_timeout`.
  std::optional<std::chrono::milliseconds> timeout = {};
  /// Effect of a failed call on the calling agent.
  tool_failure on_failure = tool_failure::tell_model;
  /// Calls that the user has to allow before they are made.
  confirmation_rule require_confirmation = {};
};

/// Makes a tool with the name and description of an agent. Its arguments follow
/// the agent's `input_schema` (for a workflow, that of its first sub-agent);
/// without a schema they are `{"request": string}`.
///
/// The agent runs in a conversation of its own, in the same invocation and
/// under its limits. It sees the state of the caller, `temp:` keys included,
/// and its changes are committed with its result. Its events are neither stored
/// nor delivered, and its changes of `temp:` keys are dropped. The result is
/// its last text, or the JSON value of that with an `output_schema`.
///
/// The call fails with `errc::circular_agent_call` if the agent already runs
/// above, and with `errc::tool_failed` if it pauses: an agent that is a tool
/// cannot wait for an answer from outside.
///
/// Throws `errc::invalid_argument` for a timeout that is not above 0, for an
/// `input_schema` that does not describe an object, and for an agent that is in
/// mode `task` or has one below it.
tool agent_tool(agent which, agent_tool_options options = {});

} // namespace troupe
