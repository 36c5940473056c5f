// Reads `McpToolset` in the tools of an agent file: the place of an MCP server.

#pragma once

#include "troupe/agents/files/fields.hpp"
#include "troupe/agents/mcp_source.hpp"

#include <string>
#include <vector>

namespace troupe {

/// Returns true for an item of `tools` that is an `McpToolset`.
bool is_mcp_toolset(const yaml_node& item);

/// Reads such an item. Fails with `errc::invalid_argument`, naming file and
/// line. A program that is not one of `commands`, and a variable that is not
/// one of `variables`, are refused.
result<mcp_source> read_mcp_toolset(const field_reader& item,
                                    const std::vector<std::string>& commands,
                                    const std::vector<std::string>& variables);

} // namespace troupe
