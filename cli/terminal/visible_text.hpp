// Makes foreign text safe for a terminal: hidden characters
// (core/support/hidden_characters.hpp) are shown as numbers.

#pragma once

#include "troupe/core/support/hidden_characters.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace troupe::cli {

/// `text` with hidden characters as numbers: `\x1b`, `\u202e`, `\U000e0041`,
/// and `\xff` for a byte that is not UTF-8. Tabs stay, and so does a variation
/// selector that makes the character before it an emoji. Each line break
/// becomes `line_break`.
std::string visible_text(std::string_view text, std::string_view line_break);

/// The beginning of `text`, at most `bytes_max` bytes, cut between characters.
std::string_view shorten(std::string_view text, std::size_t bytes_max);

} // namespace troupe::cli
