// The MCP servers that agent files name, each started once.

#pragma once

#include "troupe/agents/mcp_source.hpp"
#include "troupe/agents/toolset.hpp"

#include <mutex>
#include <utility>
#include <vector>

namespace troupe::cli {

/// Thread-safe. Ends its servers when it is destroyed, unless agents with them
/// are left.
class toolset_pool {
public:
  /// Throws as `mcp_tools`. Without the option TROUPE_MCP it throws
  /// `errc::invalid_argument`, which says so.
  toolset_ptr open(const mcp_source& source);

private:
  std::mutex mutex_;
  std::vector<std::pair<mcp_source, toolset_ptr>> opened_;
};

} // namespace troupe::cli
