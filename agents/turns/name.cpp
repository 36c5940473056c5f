#include "troupe/agents/turns/name.hpp"

#include "troupe/core/json.hpp"

#include <algorithm>

namespace troupe {

namespace {

bool is_letter(char next) noexcept {
  const auto byte = static_cast<unsigned char>(next);
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z')
         || byte == '_' || byte >= 0x80;
}

bool is_letter_or_digit(char next) noexcept {
  return is_letter(next) || (next >= '0' && next <= '9');
}

template <class Predicate>
bool is_name(std::string_view name, Predicate may_follow) noexcept {
  return !name.empty() && name.size() <= 256 && is_letter(name.front())
         && std::ranges::all_of(name, may_follow) && is_utf8(name);
}

} // namespace

bool is_identifier(std::string_view name) noexcept {
  return is_name(name, is_letter_or_digit);
}

bool is_tool_name(std::string_view name) noexcept {
  return is_name(
    name, [](char next) { return is_letter_or_digit(next) || next == '-'; });
}

} // namespace troupe
