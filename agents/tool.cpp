#include "troupe/agents/tool.hpp"

#include "troupe/agents/name.hpp"

#include <fmt/format.h>

namespace troupe {

tool::tool(tool_options options) {
  if (!is_identifier(options.name))
    throw error(
      errc::invalid_argument,
      fmt::format("tool name '{}' is not an identifier", options.name));
  if (!options.run)
    throw error(errc::invalid_argument,
                fmt::format("tool '{}' has no function", options.name));
  if (!options.parameters.is_object())
    throw error(errc::invalid_argument,
                fmt::format("the parameters of tool '{}' are no schema object",
                            options.name));
  options_ = std::make_shared<const tool_options>(std::move(options));
}

tool_registry make_registry(const std::vector<tool>& tools) {
  tool_registry registry;
  for (const auto& added : tools)
    if (!registry.emplace(added.name(), added).second)
      throw error(errc::invalid_argument,
                  fmt::format("tool name '{}' comes twice", added.name()));
  return registry;
}

} // namespace troupe
