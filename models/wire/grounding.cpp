#include "troupe/models/wire/grounding.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

void grounding::add_query(std::string_view query) {
  if (!query.empty()
      && std::find(queries_.begin(), queries_.end(), query) == queries_.end())
    queries_.push_back(query);
}

std::size_t grounding::add_page(std::string_view uri, std::string_view title) {
  const auto known = std::ranges::find_if(
    chunks_, [uri](const json& chunk) { return chunk["web"]["uri"] == uri; });
  if (known != chunks_.end())
    return static_cast<std::size_t>(known - chunks_.begin());
  auto page = json::object();
  page["uri"] = uri;
  if (!title.empty())
    page["title"] = title;
  auto chunk = json::object();
  chunk["web"] = std::move(page);
  chunks_.push_back(std::move(chunk));
  return chunks_.size() - 1;
}

void grounding::add_support(std::size_t part_index,
                            std::size_t start,
                            std::size_t end,
                            std::string_view text,
                            const std::vector<std::size_t>& pages) {
  auto indices = json::array();
  for (const auto page : pages)
    if (std::find(indices.begin(), indices.end(), page) == indices.end())
      indices.push_back(page);
  auto segment = json::object();
  segment["partIndex"] = part_index;
  segment["startIndex"] = start;
  segment["endIndex"] = end;
  segment["text"] = text;
  auto support = json::object();
  support["segment"] = std::move(segment);
  support["groundingChunkIndices"] = std::move(indices);
  supports_.push_back(std::move(support));
}

json grounding::take() && {
  auto made = json::object();
  for (auto& [name, list] : {std::pair("webSearchQueries", &queries_),
                             std::pair("groundingChunks", &chunks_),
                             std::pair("groundingSupports", &supports_)})
    if (!list->empty())
      made[name] = std::move(*list);
  return made.empty() ? json() : made;
}

} // namespace troupe
