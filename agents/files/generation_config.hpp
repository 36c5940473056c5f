// Reads the settings of a model, `generate_content_config`, and checks the
// values of those that troupe knows, with the settings inside of them.
//
// The known ones are those of ADK, in camelCase or with underscores. Further
// names are passed on, because each vendor has settings of its own.

#pragma once

#include "troupe/agents/files/fields.hpp"

namespace troupe {

/// Returns the settings as they are written; `{}` if the field is left out. The
/// words of a choice are written as the vendor does, `any` as `ANY`. Fails with
/// `errc::invalid_argument`, naming file, line, setting and allowed values: for
/// another type, an unknown choice, and a number outside of the range that the
/// vendors share.
result<json> read_generation_config(const field_reader& fields);

} // namespace troupe
