// A tool's question to the user before it acts, and the user's answer.

#pragma once

#include "troupe/core/value.hpp"

#include <string>
#include <string_view>

namespace troupe {

/// Name of the call that asks the user about another call, as in ADK.
/// Arguments: `{"originalFunctionCall": {"id", "name", "args"},
/// "toolConfirmation": {"hint", "payload"}}`. Response:
/// `{"confirmed": bool, "payload"?}`.
inline constexpr std::string_view confirmation_name
  = "adk_request_confirmation";

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

} // namespace troupe
