// Escapes of surrogates in JSON text: `\ud83e\udd89` is one character, and one
// half of it alone is none.
//
// Models that are cut off inside of a character send such halves. Parsers
// refuse them, or make text of them that is not UTF-8. Internal.

#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace troupe {

/// Returns `json_text` with U+FFFD in place of each escape of one half alone;
/// nothing if there is none. The text need not be valid JSON.
std::optional<std::string> without_lone_surrogates(std::string_view json_text);

} // namespace troupe
