#include "troupe/cli/options/toolset_pool.hpp"

#include "troupe/cli/terminal/log.hpp"
#include "troupe/mcp/mcp_tools.hpp"

#include <algorithm>

namespace troupe::cli {

toolset_ptr toolset_pool::open(const mcp_source& source) {
  const std::lock_guard guard(mutex_);
  const auto known = std::ranges::find(
    opened_, source, &std::pair<mcp_source, toolset_ptr>::first);
  if (known != opened_.end())
    return known->second;
  mcp_options options;
  options.connects_at_once = false;
  options.on_log = [](std::string_view line) {
    write_log(log_severity::info, "troupe: ", line);
  };
  auto made = mcp_tools(source, std::move(options));
  opened_.emplace_back(source, made);
  return made;
}

} // namespace troupe::cli
