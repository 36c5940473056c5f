// The value of `--state`, shared by the commands that create sessions.

#pragma once

#include "troupe/core/json.hpp"

#include <string>

namespace troupe::cli {

/// Parses a JSON object. Fails with `errc::invalid_argument`; the message does
/// not name the option.
result<json> read_state(const std::string& text);

} // namespace troupe::cli
