// Text from elsewhere, made fit for a terminal.

#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace troupe::cli {

/// `text` with its control characters spelled out (`\x1b`), so that it can
/// neither steer a terminal nor end a line of its own. Tabs stay. A line break
/// becomes `line_break`.
std::string visible_text(std::string_view text, std::string_view line_break);

/// The beginning of `text`, at most `bytes_max` bytes, cut between characters
/// and not within one.
std::string_view shorten(std::string_view text, std::size_t bytes_max);

} // namespace troupe::cli
