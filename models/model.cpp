#include "troupe/models/model.hpp"

namespace troupe {

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
