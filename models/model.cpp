#include "troupe/models/model.hpp"

#include <fmt/format.h>

namespace troupe {

result<void> model::check_vendor_tools(const std::vector<vendor_tool>& wanted,
                                       bool /*beside_functions*/) const {
  if (wanted.empty())
    return {};
  return error(errc::invalid_argument,
               fmt::format("model '{}' has no vendor tool '{}'; use a model of "
                           "a vendor that runs it, or override "
                           "check_vendor_tools",
                           name(),
                           wanted.front().name));
}

std::optional<double> total_tokens(const model_response& answer) {
  const auto& fields = answer.extra.data();
  if (!fields.is_object() || !fields.contains("usageMetadata"))
    return std::nullopt;
  const auto& usage = fields["usageMetadata"];
  if (!usage.is_object() || !usage.contains("totalTokenCount")
      || !usage["totalTokenCount"].is_number())
    return std::nullopt;
  return usage["totalTokenCount"].get<double>();
}

} // namespace troupe
