#include "troupe/models/formats/surrogates.hpp"

#include <charconv>
#include <cstddef>

namespace troupe {

namespace {

// The escape of one UTF-16 unit, `\uXXXX`.
constexpr std::size_t escape_size = 6;

std::optional<unsigned> unit_at(std::string_view text, std::size_t at) {
  const auto escape = text.substr(at, escape_size);
  unsigned unit = 0;
  if (escape.size() < escape_size || !escape.starts_with("\\u"))
    return std::nullopt;
  const auto* const end = escape.data() + escape.size();
  const auto parsed = std::from_chars(escape.data() + 2, end, unit, 16);
  return parsed.ptr == end ? std::optional(unit) : std::nullopt;
}

bool is_first_half(unsigned unit) {
  return unit >= 0xd800 && unit < 0xdc00;
}

bool is_second_half(unsigned unit) {
  return unit >= 0xdc00 && unit < 0xe000;
}

} // namespace

std::optional<std::string> without_lone_surrogates(std::string_view json_text) {
  std::optional<std::string> made;
  for (auto at = json_text.find('\\'); at < json_text.size();
       at = json_text.find('\\', at)) {
    const auto unit = unit_at(json_text, at);
    if (!unit) {
      at += 2; // Also over an escaped backslash.
      continue;
    }
    if (is_first_half(*unit)) {
      const auto next = unit_at(json_text, at + escape_size);
      if (next && is_second_half(*next)) {
        at += 2 * escape_size;
        continue;
      }
    }
    if (is_first_half(*unit) || is_second_half(*unit)) {
      if (!made)
        made.emplace(json_text);
      made->replace(at, escape_size, "\\ufffd"); // Of the same size.
    }
    at += escape_size;
  }
  return made;
}

} // namespace troupe
