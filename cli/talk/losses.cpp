#include "troupe/cli/talk/losses.hpp"

#include "troupe/cli/terminal/visible_text.hpp"

#include <fmt/format.h>

#include <vector>

namespace troupe::cli {

std::string losses_of(const run& ended) {
  const auto lost = ended.lost_updates();
  if (lost.empty())
    return {};
  std::vector<std::string> keys;
  keys.reserve(lost.size());
  for (const auto& each : lost)
    keys.push_back(visible_text(each.key, " "));
  return fmt::format(
    "lost updates: {} ({})", ended.lost_updates_count(), fmt::join(keys, ", "));
}

} // namespace troupe::cli
