// What a tool asks the user before it does something, and the user's answer.

#pragma once

#include "troupe/core/value.hpp"

#include <string>

namespace troupe {

struct tool_confirmation {
  tool_confirmation() = default;

  /// For the user: what is to be allowed.
  std::string hint;
  /// Data of the tool's; what comes back may be another.
  value payload;
  /// Only in an answer.
  bool confirmed = false;
};

} // namespace troupe
