// An agent as a tool of another one.

#pragma once

#include "troupe/agents/agent.hpp"

namespace troupe {

struct agent_tool_options {
  /// The result is the answer of the calling agent: its model is not asked
  /// again.
  bool skip_summarization = false;
  /// As in `tool_options`.
  std::optional<std::chrono::milliseconds> timeout = {};
  tool_failure on_failure = tool_failure::tell_model;
  confirmation_rule require_confirmation = {};
};

/// A tool with the name and the description of an agent. It takes what the
/// agent's `input_schema` says (of a workflow, that of its first sub-agent),
/// else a text `request`. The agent runs in a conversation of its own, in the
/// same invocation and under its limits: it sees the state of the caller, what
/// it changes there goes along with its result, its events are neither stored
/// nor delivered, and its `temp:` keys stay inside. The result is what it said
/// last, or the value of that with an `output_schema`. An agent that is running
/// above already is `errc::circular_agent_call`, for the model that asked. What
/// it does cannot wait for an answer from outside: that is
/// `errc::tool_failed`.
tool agent_tool(agent which, agent_tool_options options = {});

} // namespace troupe
