// A call of a tool with its outcome, for `invocation_context::call`, and the
// question to the user that may come before it.

#pragma once

#include "troupe/core/event.hpp"
#include "troupe/core/step_reads.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

class tool;

/// Name of the call that asks the user about another call, as in ADK.
/// Arguments: `{"originalFunctionCall": {"id", "name", "args"},
/// "toolConfirmation": {"hint", "payload"}}`. Response:
/// `{"confirmed": bool, "payload"?}`.
inline constexpr std::string_view confirmation_name
  = "adk_request_confirmation";

/// Name of the call by which a workflow's node asks the user, as in ADK.
/// Arguments: `{"interruptId": id of the call, "message": string, "payload":
/// any, "response_schema": JSON Schema}`; the last two may be null. Response:
/// `{"result": answer}`, or the answer if it is an object.
inline constexpr std::string_view request_input_name = "adk_request_input";

/// A question to the user, or the answer to one.
struct tool_confirmation {
  tool_confirmation() = default;

  /// Text for the user: the action to allow.
  std::string hint;
  /// Data of the tool. The answer may hold other data.
  value payload;
  /// Set only in an answer.
  bool confirmed = false;
};

/// One call of a turn. Calls of a turn run concurrently.
struct tool_call {
  /// The tool to run. Null if `outcome` is decided already; nothing runs then.
  const tool* which = nullptr;
  /// The call to answer: id, name and arguments.
  function_call call;
  /// The user's answer about the call.
  std::optional<tool_confirmation> confirmation;
  /// The result of the tool, or its failure. A failure does not end the other
  /// calls of the turn.
  result<json> outcome;
  /// The media that the tool attached to its response; empty if it failed.
  std::vector<part> attached;
  /// Set if the call needs the user's confirmation. Its outcome is null then,
  /// and its changes are discarded.
  std::optional<tool_confirmation> requested;
  /// The delta of the tool; empty if it failed.
  delta recorded;
  /// The values that the plain writes in `recorded` are based on, for
  /// `invocation_context::emit`.
  std::vector<write_basis> bases;
  /// Other effects of the tool, such as a transfer; empty if it failed.
  event_actions actions;
  /// Start and end of the work, if the run records them.
  timestamp began{};
  timestamp ended{}; ///< The epoch if it was not recorded.
};

} // namespace troupe
