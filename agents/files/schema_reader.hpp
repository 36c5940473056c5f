// Reads a JSON Schema from a field of an agent file.
//
// A mapping that checks nothing is never taken for a schema.

#pragma once

#include "troupe/agents/files/fields.hpp"
#include "troupe/agents/json_schema.hpp"

#include <optional>
#include <string_view>

namespace troupe {

/// Unset if the field is left out. Fails with `errc::invalid_argument`, naming
/// file and line: for the name of a Python class, which ADK allows; for a
/// mapping whose keywords check nothing, such as `{}` or `{properties: {}}`;
/// and for an invalid schema.
result<std::optional<json_schema>> read_schema(const field_reader& fields,
                                               std::string_view name);

} // namespace troupe
