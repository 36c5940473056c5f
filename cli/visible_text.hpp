// Text from elsewhere, made fit for a terminal.
//
// A terminal obeys control characters, and shows text in another order after a
// bidi control (U+202E and its like). Characters without a glyph make different
// words look equal. All of these are shown by their numbers. The classes are
// those of the Unicode Character Database, as utf8proc has them: the categories
// Cc, Cf, Zl and Zp, and the property Default_Ignorable_Code_Point.

#pragma once

#include "troupe/core/json.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace troupe::cli {

/// `text` with such characters spelled out: `\x1b`, `\u202e`, `\U000e0041`, and
/// `\xff` for a byte that is not UTF-8. Tabs stay, and so does a variation
/// selector that makes an emoji of the character before it. A line break
/// becomes `line_break`.
std::string visible_text(std::string_view text, std::string_view line_break);

/// Compact JSON text of `data`, the same data, with such characters as escapes
/// of JSON. `data` must have passed `check_json`.
std::string visible_json(const json& data);

/// The beginning of `text`, at most `bytes_max` bytes, cut between characters
/// and not within one.
std::string_view shorten(std::string_view text, std::size_t bytes_max);

} // namespace troupe::cli
