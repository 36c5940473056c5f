#include "troupe/agents/turns/name.hpp"

#include "troupe/core/json.hpp"

#include <algorithm>

namespace troupe {

bool is_identifier(std::string_view name) noexcept {
  const auto is_letter = [](char next) {
    const auto byte = static_cast<unsigned char>(next);
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z')
           || byte == '_' || byte >= 0x80;
  };
  const auto is_digit = [](char next) { return next >= '0' && next <= '9'; };
  return !name.empty() && name.size() <= 256 && is_letter(name.front())
         && std::ranges::all_of(
           name, [&](char next) { return is_letter(next) || is_digit(next); })
         && is_utf8(name);
}

} // namespace troupe
