// Characters that must not reach a terminal from untrusted text, and JSON
// without them.
//
// A terminal obeys control characters, and shows text in another order after a
// bidi control (such as U+202E). Characters without a glyph make different
// words look equal. The classes are those of the Unicode Character Database, as
// provided by utf8proc: the categories Cc, Cf, Zl and Zp, and the property
// Default_Ignorable_Code_Point.

#pragma once

#include "troupe/core/json.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

struct character {
  std::int32_t code = -1; ///< Below 0 if it is not UTF-8.
  std::size_t bytes = 1;
  bool hidden = false; ///< Also true for tabs and line breaks.
};

/// Reads the first character of `text`, which must not be empty. A variation
/// selector that selects the form of the character `before` is not hidden.
character first_character(std::string_view text, std::int32_t before);

/// Returns compact JSON text of the same data, with hidden characters as JSON
/// escapes. Bytes that are not UTF-8 become U+FFFD.
std::string visible_json(const json& data);

} // namespace troupe
