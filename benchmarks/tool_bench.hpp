// Calls of an MCP server's tools over stdio, beside a client that only writes
// and reads lines.

#pragma once

#include <cstddef>

namespace bench {

void call_tools(std::size_t rounds, double seconds);

} // namespace bench
