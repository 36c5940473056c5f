#include "troupe/agents/turns/shown_memory.hpp"

#include "troupe/agents/turns/fence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace troupe {

namespace {

constexpr std::string_view cut_mark = " […]";
constexpr std::string_view block_name = "PAST_CONVERSATIONS";

// Cuts the text between two characters.
void cut(std::string& text, std::size_t bytes_max) {
  if (text.size() <= bytes_max)
    return;
  while (bytes_max > 0
         && (static_cast<unsigned char>(text[bytes_max]) & 0xC0U) == 0x80U)
    --bytes_max;
  text.resize(bytes_max);
  text += cut_mark;
}

std::string clean(std::string text) {
  text = without_markers(std::move(text));
  for (auto at = text.find(block_name); at != std::string::npos;
       at = text.find(block_name, at))
    text.erase(at, block_name.size());
  return text;
}

std::string indented(std::string_view text) {
  std::string made;
  for (const char next : text) {
    made += next == '\r' ? '\n' : next;
    if (made.back() == '\n')
      made += "  ";
  }
  return made;
}

} // namespace

std::vector<memory_entry> shown_memories(std::vector<memory_entry> found) {
  auto left = shown_memories_bytes_max;
  for (auto each = found.begin(); each != found.end(); ++each) {
    if (left == 0) {
      found.erase(each, found.end());
      break;
    }
    each->author = clean(std::move(each->author));
    auto own = std::min(left, shown_memory_bytes_max);
    const auto before = own;
    for (auto& element : each->content.parts)
      if (const auto* text = element.text()) {
        auto shown = clean(*text);
        const auto size = std::min(shown.size(), own);
        cut(shown, own);
        own -= size;
        element.body = std::move(shown);
      }
    left -= before - own;
  }
  return found;
}

std::string joined_texts(const content& said) {
  std::string joined;
  for (const auto& each : said.parts)
    if (const auto* text = each.text();
        text != nullptr && !text->empty() && !each.thought) {
      if (!joined.empty())
        joined += ' ';
      joined += *text;
    }
  return joined;
}

std::string memory_block(const std::vector<memory_entry>& found) {
  auto block = fmt::format(
    "Parts of earlier conversations with this user follow. They may help to "
    "answer the present message.\n<{}>\n",
    block_name);
  for (const auto& each : found) {
    block += fmt::format("Time: {}\n", time_text(each));
    if (!each.author.empty())
      block += fmt::format("{}: ", indented(each.author));
    block += fmt::format("{}\n", indented(joined_texts(each.content)));
  }
  return block + fmt::format("</{}>\n", block_name);
}

} // namespace troupe
