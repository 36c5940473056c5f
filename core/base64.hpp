// Bytes as text in base64, and back.

#pragma once

#include "troupe/core/error.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

/// Which two characters come after the letters and digits.
enum class base64_alphabet : std::uint8_t {
  standard, ///< `+` and `/`.
  url,      ///< `-` and `_`; what ADK for Python writes.
};

/// With padding, without line breaks.
std::string to_base64(std::string_view bytes,
                      base64_alphabet alphabet = base64_alphabet::standard);

/// Reads either alphabet, with or without padding. Fails with
/// `errc::invalid_argument` on any other character (line breaks too) and on
/// text that is cut off.
result<std::string> from_base64(std::string_view text);

} // namespace troupe
