#include "troupe/agents/summary.hpp"

#include <chrono>
#include <cmath>
#include <utility>

namespace troupe {

namespace {

// The field by its camelCase or its snake_case name; or null.
const json*
field_of(const json& data, const char* camel_case, const char* snake_case) {
  for (const auto* name : {camel_case, snake_case})
    if (const auto found = data.find(name); found != data.end())
      return &*found;
  return nullptr;
}

// Unset for a number that is not a time before year 10000.
std::optional<timestamp> from_seconds(double seconds) {
  constexpr double seconds_max = 253402300799.0;
  if (!std::isfinite(seconds) || std::abs(seconds) > seconds_max)
    return std::nullopt;
  return timestamp(std::chrono::microseconds(std::llround(seconds * 1e6)));
}

std::optional<std::uint64_t> to_revision(const json* field) {
  if (field == nullptr || !field->is_number_integer()
      || (!field->is_number_unsigned() && field->get<std::int64_t>() < 0))
    return std::nullopt;
  return field->get<std::uint64_t>();
}

std::optional<timestamp> to_time(const json* field) {
  return field != nullptr && field->is_number()
           ? from_seconds(field->get<double>())
           : std::nullopt;
}

} // namespace

std::optional<summary> summary_of(const event& said) {
  const auto& extra = said.actions.extra.data();
  if (!extra.is_object() || said.partial || !said.branch.empty())
    return std::nullopt;
  const auto found = extra.find("compaction");
  if (found == extra.end() || !found->is_object())
    return std::nullopt;
  const auto* told = field_of(*found, "compactedContent", "compacted_content");
  if (told == nullptr)
    return std::nullopt;
  auto read = content_from_json(*told);
  if (!read || read->parts.empty())
    return std::nullopt;
  summary made{.content = std::move(*read)};
  made.start_revision
    = to_revision(field_of(*found, "startRevision", "start_revision"));
  made.end_revision
    = to_revision(field_of(*found, "endRevision", "end_revision"));
  made.start_time
    = to_time(field_of(*found, "startTimestamp", "start_timestamp"));
  made.end_time = to_time(field_of(*found, "endTimestamp", "end_timestamp"));
  return made;
}

event make_summary_event(std::string text,
                         std::optional<std::uint64_t> end_revision) {
  auto compaction = json::object();
  compaction["compactedContent"]
    = to_json(content("model", {part(std::move(text))}));
  if (end_revision)
    compaction["endRevision"] = *end_revision;
  auto actions = json::object();
  actions["compaction"] = std::move(compaction);
  event made;
  made.author = "user";
  made.actions.extra = std::move(actions);
  return made;
}

} // namespace troupe
