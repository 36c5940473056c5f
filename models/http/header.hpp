// The characters that HTTP allows in headers. Internal.
//
// Source: RFC 9110, sections 5.1 and 5.5. A line break in a value would begin
// another header, or another request.

#pragma once

#include <algorithm>
#include <string_view>

namespace troupe {

/// Returns true for a token: ASCII letters, digits and some signs, at least
/// one.
inline bool is_header_name(std::string_view name) {
  constexpr std::string_view signs = "!#$%&'*+-.^_`|~";
  return !name.empty() && std::ranges::all_of(name, [signs](char next) {
    return (next >= 'a' && next <= 'z') || (next >= 'A' && next <= 'Z')
           || (next >= '0' && next <= '9')
           || signs.find(next) != std::string_view::npos;
  });
}

/// Returns true for a value without control characters besides the tab. Bytes
/// above ASCII are allowed.
inline bool is_header_value(std::string_view value) {
  return std::ranges::none_of(value, [](unsigned char next) {
    return (next < ' ' && next != '\t') || next == 0x7f;
  });
}

/// Returns true for a value of printable ASCII and blanks only.
inline bool is_ascii_header_value(std::string_view value) {
  return std::ranges::all_of(
    value, [](unsigned char next) { return next >= ' ' && next < 0x7f; });
}

} // namespace troupe
