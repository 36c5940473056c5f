// Takes the place of toolset_pool.cpp in a build without TROUPE_MCP.

#include "troupe/cli/options/toolset_pool.hpp"
#include "troupe/core/error.hpp"

namespace troupe::cli {

toolset_ptr toolset_pool::open(const mcp_source&) {
  throw error(errc::invalid_argument,
              "this troupe was built without MCP; build it with "
              "-DTROUPE_MCP=ON");
}

} // namespace troupe::cli
