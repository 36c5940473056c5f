// Reads `McpToolset` in the tools of an agent file: the place of an MCP server.

#pragma once

#include "troupe/agents/files/access.hpp"
#include "troupe/agents/files/fields.hpp"
#include "troupe/agents/mcp_source.hpp"

namespace troupe {

/// Returns true for an item of `tools` that is an `McpToolset`.
bool is_mcp_toolset(const yaml_node& item);

/// Reads such an item. Fails with `errc::invalid_argument`, naming file and
/// line. A program and a variable that `access` does not allow are refused.
result<mcp_source> read_mcp_toolset(const field_reader& item,
                                    const file_access& access);

} // namespace troupe
