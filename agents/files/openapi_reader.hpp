// Reads `OpenAPIToolset` in the tools of an agent file: the document of an HTTP
// API, and the secrets for it.

#pragma once

#include "troupe/agents/files/access.hpp"
#include "troupe/agents/files/fields.hpp"
#include "troupe/agents/tool.hpp"

#include <vector>

namespace troupe {

/// Returns true for an item of `tools` that is an `OpenAPIToolset`.
bool is_openapi_toolset(const yaml_node& item);

/// Reads such an item. Sends nothing. Fails with `errc::invalid_argument`,
/// naming file and line, also for a variable that `access` does not allow.
result<std::vector<tool>> read_openapi_toolset(const field_reader& item,
                                               const file_access& access);

} // namespace troupe
