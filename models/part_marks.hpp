// What a wire format has to know of a part when it goes back, and content has
// no field for: `partMetadata: {"gemini": {…}, "openai": {…}}` of the part, so
// that it stays with the part in every event, store and file. Internal; not
// installed.

#pragma once

#include "troupe/core/content.hpp"

#include <string_view>

namespace troupe {

/// Null if there is none, or `vendor` has not made one of that name.
json mark_of(const part& said, std::string_view vendor, std::string_view name);

void set_mark(part& said,
              std::string_view vendor,
              std::string_view name,
              json mark);

/// The rest of the part's `partMetadata`, or null.
json unmarked_metadata(const part& said);

} // namespace troupe
