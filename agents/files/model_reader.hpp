// Reads the field `model` of an agent file: a name, or a mapping with name,
// address and limits.

#pragma once

#include "troupe/agents/files/fields.hpp"
#include "troupe/models/open_model.hpp"

#include <optional>
#include <string_view>

namespace troupe {

/// Unset if the field is left out. Fails with `errc::invalid_argument`, naming
/// file and line. Refuses fields that would hold an API key.
result<std::optional<model_source>> read_model_source(const field_reader& of);

/// Returns true if a header of this name usually holds a key.
bool may_hold_key(std::string_view header);

} // namespace troupe
