// The names of agents and tools.

#pragma once

#include <string_view>

namespace troupe {

/// Returns true if `name` matches `[A-Za-z_][A-Za-z0-9_]*` and has at most 256
/// bytes. Non-ASCII characters count as letters if they are valid UTF-8.
bool is_identifier(std::string_view name) noexcept;

/// Returns true for an identifier that may also have `-` after its first
/// character, as many tools of MCP servers.
bool is_tool_name(std::string_view name) noexcept;

} // namespace troupe
