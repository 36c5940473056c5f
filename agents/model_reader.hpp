// The field `model` of an agent file: a name, or a mapping of how it is asked.

#pragma once

#include "troupe/agents/agent_fields.hpp"
#include "troupe/models/open_model.hpp"

#include <optional>

namespace troupe {

/// Nothing if the field is left out. Fails with `errc::invalid_argument`,
/// naming file and line; a field that would hold a key is refused.
result<std::optional<model_source>> read_model_source(const field_reader& of);

} // namespace troupe
