// Converts bytes to base64 text and back.

#pragma once

#include "troupe/core/error.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

/// The two characters after the letters and digits.
enum class base64_alphabet : std::uint8_t {
  standard, ///< `+` and `/`.
  url,      ///< `-` and `_`, as written by ADK for Python.
};

/// Encodes with padding and without line breaks.
std::string to_base64(std::string_view bytes,
                      base64_alphabet alphabet = base64_alphabet::standard);

/// Decodes either alphabet, with or without padding. Fails with
/// `errc::invalid_argument` on any other character (also line breaks) and on
/// truncated text.
result<std::string> from_base64(std::string_view text);

} // namespace troupe
