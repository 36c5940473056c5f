// Marks that a wire format attaches to a part, because it needs them when the
// part goes back to the model and content has no field for them. They are in
// `partMetadata: {"anthropic": {…}, "gemini": {…}, "openai": {…}}` of the part,
// so every event, store and file keeps them. Internal.

#pragma once

#include "troupe/core/content.hpp"

#include <string_view>

namespace troupe {

/// Returns a mark; null if `vendor` has none of that name.
json mark_of(const part& said, std::string_view vendor, std::string_view name);

void set_mark(part& said,
              std::string_view vendor,
              std::string_view name,
              json mark);

/// Returns the rest of the part's `partMetadata`, or null.
json unmarked_metadata(const part& said);

} // namespace troupe
