// Reads a tool of an agent file that is a program:
// `{name: weather, command: [./weather.py, --json], parameters: {…}}`.

#pragma once

#include "troupe/agents/files/access.hpp"
#include "troupe/agents/files/fields.hpp"
#include "troupe/agents/tool.hpp"

namespace troupe {

/// Returns true for an item of `tools` that is a program.
bool is_command_tool(const yaml_node& item);

/// Reads such an item, but not its `require_confirmation`. Starts nothing.
/// Fails with `errc::invalid_argument`, naming file and line, also for a
/// program and for a variable that `access` does not allow.
result<tool> read_command_tool(const field_reader& item,
                               const file_access& access);

} // namespace troupe
