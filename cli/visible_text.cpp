#include "troupe/cli/visible_text.hpp"

#include <fmt/format.h>

namespace troupe::cli {

std::string visible_text(std::string_view text, std::string_view line_break) {
  std::string shown;
  shown.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto next = static_cast<unsigned char>(text[at]);
    const auto behind
      = at + 1 < text.size() ? static_cast<unsigned char>(text[at + 1]) : 0U;
    if (next == '\n') {
      shown += line_break;
    } else if (next == '\r' && behind == '\n') {
      continue;
    } else if ((next < 0x20 && next != '\t') || next == 0x7F) {
      shown += fmt::format("\\x{:02x}", next);
    } else if (next == 0xC2 && behind >= 0x80 && behind < 0xA0) {
      // The second block of control characters, in UTF-8.
      shown += fmt::format("\\x{:02x}", behind);
      ++at;
    } else {
      shown += text[at];
    }
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
