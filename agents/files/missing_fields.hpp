// Fields of ADK's agents and nodes that troupe does not have, and the way to
// reach the same without them.

#pragma once

#include <string_view>

namespace troupe {

/// The reason why a field of ADK is refused, with the way out; empty for any
/// other field.
std::string_view why_missing(std::string_view field);

} // namespace troupe
