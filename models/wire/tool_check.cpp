#include "troupe/models/wire/tool_check.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe {

result<void> check_tools(const std::vector<vendor_tool>& wanted,
                         std::initializer_list<std::string_view> known) {
  for (const auto& each : wanted) {
    if (std::ranges::find(known, each.name) == known.end())
      return error(
        errc::invalid_argument,
        fmt::format("the vendor does not run '{}' for this model; remove it "
                    "or use another model (available: {})",
                    each.name,
                    known.size() == 0
                      ? std::string("none")
                      : fmt::format("{}", fmt::join(known, ", "))));
    if (!each.settings.is_null() && !each.settings->is_object())
      return error(
        errc::invalid_argument,
        fmt::format("the settings of the tool '{}' must be an object, such as "
                    "{{\"max_uses\": 3}}, or null",
                    each.name));
  }
  return {};
}

} // namespace troupe
