// Reads the field `model` of an agent file: a name, a mapping with name,
// address and limits, or a list of both.

#pragma once

#include "troupe/agents/files/fields.hpp"
#include "troupe/models/open_model.hpp"

#include <string_view>
#include <vector>

namespace troupe {

/// A model, and the line that names it.
struct named_source {
  model_source source;
  int line = 0;
};

/// Returns the models in their order; none if the field is left out. Fails with
/// `errc::invalid_argument`, naming file and line. Refuses fields that would
/// hold an API key, and a list that is empty.
result<std::vector<named_source>> read_model_sources(const field_reader& of);

/// Returns true if a header of this name usually holds a key.
bool may_hold_key(std::string_view header);

} // namespace troupe
