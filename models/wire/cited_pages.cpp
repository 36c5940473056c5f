#include "troupe/models/wire/cited_pages.hpp"

#include <utility>

namespace troupe {

namespace {

// Returns the place in bytes of the character with this number; nothing if the
// text, which is UTF-8, has fewer.
std::optional<std::size_t> byte_of(std::string_view text, std::int64_t number) {
  std::size_t at = 0;
  for (; number > 0 && at < text.size(); --number)
    do
      ++at;
    while (at < text.size()
           && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U);
  return number == 0 ? std::optional(at) : std::nullopt;
}

} // namespace

void cited_pages::add(citation cited) {
  cited_.push_back(std::move(cited));
}

void cited_pages::add_citations(json& citations) const {
  for (const auto& each : cited_) {
    auto made = json::object();
    if (!each.title.empty())
      made["title"] = each.title;
    if (!each.uri.empty())
      made["uri"] = each.uri;
    if (each.start)
      made["startIndex"] = *each.start;
    if (each.end)
      made["endIndex"] = *each.end;
    if (!made.empty())
      citations.push_back(std::move(made));
  }
}

void cited_pages::add_sources(std::size_t part_index,
                              std::string_view words,
                              grounding& sources) const {
  for (const auto& each : cited_) {
    if (each.uri.empty())
      continue;
    const auto page = sources.add_page(each.uri, each.title);
    const auto start = each.start ? byte_of(words, *each.start) : std::nullopt;
    const auto end = each.end ? byte_of(words, *each.end) : std::nullopt;
    if (start && end && *start < *end)
      sources.add_support(
        part_index, *start, *end, words.substr(*start, *end - *start), {page});
  }
}

} // namespace troupe
