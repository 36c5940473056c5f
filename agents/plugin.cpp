#include "troupe/agents/plugin.hpp"

#include <fmt/format.h>

#include <set>
#include <string_view>

namespace troupe {

result<void> check_plugins(const std::vector<plugin>& plugins) {
  std::set<std::string_view> names;
  for (const auto& each : plugins) {
    if (each.name.empty())
      return error(errc::invalid_argument, "a plugin has no name");
    if (!names.insert(each.name).second)
      return error(errc::invalid_argument,
                   fmt::format("plugin name '{}' comes twice", each.name));
  }
  return {};
}

} // namespace troupe
