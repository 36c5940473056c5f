#include "troupe/agents/drawings/line.hpp"

#include "troupe/core/support/hidden_characters.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <ctime>

namespace troupe::drawings {

namespace {

std::string number_of(std::int32_t code) {
  return code < 0x100     ? fmt::format("\\x{:02x}", code)
         : code < 0x10000 ? fmt::format("\\u{:04x}", code)
                          : fmt::format("\\U{:08x}", code);
}

bool is_blank(std::int32_t code) {
  return code == ' ' || (code >= '\t' && code <= '\r');
}

} // namespace

std::string line_of(std::string_view text, std::size_t characters_max) {
  std::string line;
  std::size_t characters = 0;
  std::int32_t before = 0;
  bool is_after_blank = false;
  while (!text.empty()) {
    const auto next = first_character(text, before);
    const auto bytes = text.substr(0, next.bytes);
    text.remove_prefix(next.bytes);
    before = next.code;
    if (next.code >= 0 && is_blank(next.code)) {
      is_after_blank = !line.empty();
      continue;
    }
    if (characters + (is_after_blank ? 1 : 0) >= characters_max)
      return line + "…";
    if (is_after_blank)
      line += ' ';
    characters += is_after_blank ? 2 : 1;
    is_after_blank = false;
    if (next.code < 0)
      line += number_of(static_cast<unsigned char>(bytes.front()));
    else if (next.hidden)
      line += number_of(next.code);
    else
      line += bytes;
  }
  return line;
}

std::string time_words(timestamp at) {
  const auto seconds
    = std::chrono::ceil<std::chrono::seconds>(at.time_since_epoch()).count();
  return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC",
                     fmt::gmtime(static_cast<std::time_t>(seconds)));
}

std::string_view to_string(relation how) noexcept {
  constexpr std::array<std::string_view, 6> words
    = {"tool", "calls", "calls", "gives tasks to", "hands over to", "may run"};
  return words.at(static_cast<std::size_t>(how));
}

std::string words_of(const edge& shown, flow order) {
  if (shown.is_default)
    return "by default";
  if (order == flow::routed && !shown.label.empty())
    return "on " + shown.label;
  return shown.label;
}

} // namespace troupe::drawings
