#include "troupe/cli/terminal/visible_text.hpp"

#include <fmt/format.h>

#include <cstdint>

namespace troupe::cli {

namespace {

std::string escape_of(std::int32_t code) {
  return code < 0x100     ? fmt::format("\\x{:02x}", code)
         : code < 0x10000 ? fmt::format("\\u{:04x}", code)
                          : fmt::format("\\U{:08x}", code);
}

} // namespace

std::string visible_text(std::string_view text, std::string_view line_break) {
  std::string shown;
  shown.reserve(text.size());
  std::int32_t before = 0;
  while (!text.empty()) {
    const auto next = first_character(text, before);
    if (next.code < 0)
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
    else if (next.code == '\n')
      shown += line_break;
    else if (next.code == '\t' || !next.hidden)
      shown += text.substr(0, next.bytes);
    else if (!text.starts_with("\r\n"))
      shown += escape_of(next.code);
    before = next.code;
    text.remove_prefix(next.bytes);
  }
  return shown;
}

std::string_view shorten(std::string_view text, std::size_t bytes_max) {
  if (text.size() <= bytes_max)
    return text;
  auto end = bytes_max;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U)
    --end;
  return text.substr(0, end);
}

} // namespace troupe::cli
