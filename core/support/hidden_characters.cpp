#include "troupe/core/support/hidden_characters.hpp"

#include <fmt/format.h>
#include <utf8proc.h>

namespace troupe {

namespace {

bool is_hidden(std::int32_t code) {
  const auto& found = *utf8proc_get_property(code);
  switch (found.category) {
  case UTF8PROC_CATEGORY_CC:
  case UTF8PROC_CATEGORY_ZL:
  case UTF8PROC_CATEGORY_ZP:
    return true;
  case UTF8PROC_CATEGORY_CF:
    // Signs before numbers in Arabic (such as U+0600) have a glyph.
    return found.boundclass != UTF8PROC_BOUNDCLASS_PREPEND;
  default:
    return found.ignorable != 0;
  }
}

// Returns true if the selector chooses between text and emoji form of the
// character before it.
bool picks_form(std::int32_t code, std::int32_t before) {
  return (code == 0xFE0E || code == 0xFE0F) && before >= 0x80
         && !is_hidden(before);
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

character first_character(std::string_view text, std::int32_t before) {
  if (is_plain(text.front()))
    return {text.front(), 1, false};
  character read;
  const auto bytes = utf8proc_iterate(
    // utf8proc takes unsigned characters.
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast)
    reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
    static_cast<utf8proc_ssize_t>(text.size()),
    &read.code);
  if (bytes <= 0)
    return {};
  read.bytes = static_cast<std::size_t>(bytes);
  read.hidden = is_hidden(read.code) && !picks_form(read.code, before);
  return read;
}

std::string visible_json(const json& data) {
  const auto text = data.dump(-1, ' ', false, json::error_handler_t::replace);
  std::string shown;
  shown.reserve(text.size());
  std::int32_t before = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const auto next = first_character(rest, before);
    // Only strings can contain hidden characters, so an escape is valid there.
    if (next.hidden)
      shown += json_escape_of(next.code);
    else
      shown += rest.substr(0, next.bytes);
    before = next.code;
    rest.remove_prefix(next.bytes);
  }
  return shown;
}

} // namespace troupe
