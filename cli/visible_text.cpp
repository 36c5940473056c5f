#include "troupe/cli/visible_text.hpp"

#include <fmt/format.h>
#include <utf8proc.h>

#include <cstdint>

namespace troupe::cli {

namespace {

struct character {
  std::int32_t code = -1; // Below 0: no UTF-8.
  std::size_t bytes = 1;
};

character first_of(std::string_view text) {
  character read;
  const auto bytes = utf8proc_iterate(
    // utf8proc takes unsigned characters.
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast)
    reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
    static_cast<utf8proc_ssize_t>(text.size()),
    &read.code);
  if (bytes > 0)
    read.bytes = static_cast<std::size_t>(bytes);
  else
    read.code = -1;
  return read;
}

bool is_hidden(std::int32_t code) {
  const auto& found = *utf8proc_get_property(code);
  switch (found.category) {
  case UTF8PROC_CATEGORY_CC:
  case UTF8PROC_CATEGORY_ZL:
  case UTF8PROC_CATEGORY_ZP:
    return true;
  case UTF8PROC_CATEGORY_CF:
    // The signs before numbers in Arabic (U+0600 and its like) have a glyph.
    return found.boundclass != UTF8PROC_BOUNDCLASS_PREPEND;
  default:
    return found.ignorable != 0;
  }
}

// Text and emoji form of the character before, which has both forms.
bool picks_form(std::int32_t code, std::int32_t before) {
  return (code == 0xFE0E || code == 0xFE0F) && before >= 0x80
         && !is_hidden(before);
}

std::string escape_of(std::int32_t code) {
  return code < 0x100     ? fmt::format("\\x{:02x}", code)
         : code < 0x10000 ? fmt::format("\\u{:04x}", code)
                          : fmt::format("\\U{:08x}", code);
}

std::string json_escape_of(std::int32_t code) {
  if (code < 0x10000)
    return fmt::format("\\u{:04x}", code);
  const auto rest = static_cast<std::uint32_t>(code - 0x10000);
  return fmt::format(
    "\\u{:04x}\\u{:04x}", 0xD800 + (rest >> 10U), 0xDC00 + (rest & 0x3FFU));
}

bool is_plain(char next) {
  return static_cast<unsigned char>(next) >= 0x20
         && static_cast<unsigned char>(next) < 0x7F;
}

} // namespace

std::string visible_text(std::string_view text, std::string_view line_break) {
  std::string shown;
  shown.reserve(text.size());
  std::int32_t before = 0;
  while (!text.empty()) {
    const auto next
      = is_plain(text.front()) ? character{text.front(), 1} : first_of(text);
    if (next.code < 0)
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
    else if (next.code == '\n')
      shown += line_break;
    else if (next.code == '\t' || is_plain(text.front())
             || !is_hidden(next.code) || picks_form(next.code, before))
      shown += text.substr(0, next.bytes);
    else if (!text.starts_with("\r\n"))
      shown += escape_of(next.code);
    before = next.code;
    text.remove_prefix(next.bytes);
  }
  return shown;
}

std::string visible_json(const json& data) {
  const auto text = to_text(data);
  std::string shown;
  shown.reserve(text.size());
  std::int32_t before = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const auto next
      = is_plain(rest.front()) ? character{rest.front(), 1} : first_of(rest);
    // Only strings hold such characters, so an escape is in place.
    if (next.code < 0 || is_plain(rest.front()) || !is_hidden(next.code)
        || picks_form(next.code, before))
      shown += rest.substr(0, next.bytes);
    else
      shown += json_escape_of(next.code);
    before = next.code;
    rest.remove_prefix(next.bytes);
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
