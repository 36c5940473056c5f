// The sources of an answer, in the form of `GroundingMetadata` of Gemini and
// ADK, for vendors that tell them in another form. Internal.

#pragma once

#include "troupe/core/json.hpp"

#include <cstddef>
#include <string_view>
#include <vector>

namespace troupe {

/// Collects `{"webSearchQueries": [string], "groundingChunks": [{"web": {"uri":
/// string, "title"?: string}}], "groundingSupports": [{"segment": {"partIndex",
/// "startIndex", "endIndex", "text"}, "groundingChunkIndices": [number]}]}`.
/// Lists without an element are left out. Indices of text are in bytes of the
/// part's text.
class grounding {
public:
  /// Adds a query of a search. An empty or repeated one is left out.
  void add_query(std::string_view query);

  /// Adds a page, unless there is one of this address. Returns its index.
  std::size_t add_page(std::string_view uri, std::string_view title);

  /// Adds a piece of the answer and the pages that it rests on. An index of a
  /// page that comes twice is left out.
  void add_support(std::size_t part_index,
                   std::size_t start,
                   std::size_t end,
                   std::string_view text,
                   const std::vector<std::size_t>& pages);

  /// Returns the object; null if nothing was added.
  json take() &&;

private:
  json queries_ = json::array();
  json chunks_ = json::array();
  json supports_ = json::array();
};

} // namespace troupe
