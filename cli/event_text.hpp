// An event as people read it on a terminal.

#pragma once

#include "troupe/core/event.hpp"

#include <string>

namespace troupe::cli {

/// Lines that end in a newline: `author: text`, and a compact one for each tool
/// call, tool result, failure and state change. Long values are cut; the wire
/// form has all of them.
std::string show(const event& said);

} // namespace troupe::cli
