// White space, and texts that have nothing else.

#pragma once

#include <string_view>

namespace troupe {

/// White space of ASCII, for texts of people.
inline constexpr std::string_view white_space = " \t\r\n\v\f";

/// White space of JSON and HTTP, for texts of models and servers.
inline constexpr std::string_view wire_white_space = " \t\r\n";

/// Returns true if a text is empty or has only white space.
inline bool is_blank(std::string_view text) {
  return text.find_first_not_of(white_space) == std::string_view::npos;
}

/// Returns the text without the characters of `removed` at its ends.
inline std::string_view trimmed(std::string_view text,
                                std::string_view removed = white_space) {
  const auto first = text.find_first_not_of(removed);
  if (first == std::string_view::npos)
    return {};
  return text.substr(first, text.find_last_not_of(removed) - first + 1);
}

} // namespace troupe
