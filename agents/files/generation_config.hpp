// Reads the settings of a model, `generate_content_config`, and checks the
// types of those that troupe knows.
//
// The known ones are those of ADK, in camelCase or with underscores. Further
// names are passed on, because each vendor has settings of its own.

#pragma once

#include "troupe/agents/files/fields.hpp"

namespace troupe {

/// Returns the settings as they are written; `{}` if the field is left out.
/// Fails with `errc::invalid_argument`, naming file, line, setting and expected
/// type. Ranges are not checked: each vendor has its own.
result<json> read_generation_config(const field_reader& fields);

} // namespace troupe
