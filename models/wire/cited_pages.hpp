// Pages that an answer of OpenAI cites (`url_citation`). Internal.

#pragma once

#include "troupe/core/json.hpp"
#include "troupe/models/wire/grounding.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// Collects the citations of one text.
class cited_pages {
public:
  /// A page, and the piece of the text that rests on it. Places are in
  /// characters. A field that is missing is empty.
  struct citation {
    std::string uri;
    std::string title;
    std::optional<std::int64_t> start = {};
    std::optional<std::int64_t> end = {};
  };

  void add(citation cited);

  /// Adds `{"uri"?, "title"?, "startIndex"?, "endIndex"?}` for each citation
  /// to a list.
  void add_citations(json& citations) const;

  /// Adds the pages, and the pieces of the text `words`, which is the part
  /// `part_index` of the answer. A place outside of the text is left out.
  void add_sources(std::size_t part_index,
                   std::string_view words,
                   grounding& sources) const;

private:
  std::vector<citation> cited_;
};

} // namespace troupe
