#include "troupe/cli/adk/event_form.hpp"

#include "troupe/core/rewind.hpp"
#include "troupe/core/support/wire.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <string>
#include <string_view>

namespace troupe::cli {

// The tables follow the models of google-adk 2.13.0: `Event`, `EventActions`
// and the types of google.genai in them. Names are in camelCase.

namespace {

using rename = std::string (*)(std::string_view);

// Fields of an event whose values have fields of ADK. Others have values of
// users, or names that are the same in both forms.
constexpr std::array<std::string_view, 11> nested_in_event{
  "content",
  "groundingMetadata",
  "usageMetadata",
  "citationMetadata",
  "logprobsResult",
  "inputTranscription",
  "outputTranscription",
  "liveSessionResumptionUpdate",
  "goAway",
  "voiceActivity",
  "nodeInfo"};

constexpr std::array<std::string_view, 1> nested_in_actions{"compaction"};

// Fields at any depth whose values belong to users.
constexpr std::array<std::string_view, 3> of_users{
  "args", "response", "partMetadata"};

constexpr std::array<std::string_view, 15> known_actions{
  "skipSummarization",
  "stateDelta",
  "artifactDelta",
  "transferToAgent",
  "transferReason",
  "escalate",
  "requestedAuthConfigs",
  "requestedToolConfirmations",
  "compaction",
  "endOfAgent",
  "agentState",
  "rewindBeforeInvocationId",
  "route",
  "renderUiWidgets",
  "setModelResponse"};

template <std::size_t Count>
bool is_in(const std::array<std::string_view, Count>& names,
           std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

std::string to_snake_case(std::string_view name) {
  std::string snake;
  for (const char next : name) {
    const auto letter = static_cast<unsigned char>(next);
    if (std::isupper(letter) != 0 && !snake.empty())
      snake += '_';
    snake += static_cast<char>(std::tolower(letter));
  }
  return snake;
}

json rename_all(const json& data, rename by) {
  if (data.is_array()) {
    auto made = json::array();
    for (const auto& element : data)
      made.push_back(rename_all(element, by));
    return made;
  }
  if (!data.is_object())
    return data;
  auto made = json::object();
  for (const auto& [name, field] : data.items())
    made[by(name)]
      = is_in(of_users, to_camel_case(name)) ? field : rename_all(field, by);
  return made;
}

template <std::size_t Count>
json rename_fields(const json& data,
                   const std::array<std::string_view, Count>& nested,
                   rename by) {
  auto made = json::object();
  for (const auto& [name, field] : data.items())
    made[by(name)]
      = is_in(nested, to_camel_case(name)) ? rename_all(field, by) : field;
  return made;
}

json rename_event(const json& data, rename by) {
  auto made = rename_fields(data, nested_in_event, by);
  if (const auto found = made.find("actions");
      found != made.end() && found->is_object())
    *found = rename_fields(*found, nested_in_actions, by);
  return made;
}

// Times of events are kept in microseconds. The range of a summary is rounded
// like them, so that it begins and ends at the same events as before.
void round_times(json& compaction) {
  for (const auto* name : {"startTimestamp", "endTimestamp"})
    if (const auto found = compaction.find(name);
        found != compaction.end() && found->is_number_float())
      *found = std::round(found->get<double>() * 1e6) / 1e6;
}

// ADK's summaries have two times and no other fields. A summary without times
// covers all events before its own.
void drop_revisions(json& compaction, const event& said) {
  for (const auto* name : {"startRevision", "endRevision"})
    compaction.erase(name);
  if (!compaction.contains("startTimestamp"))
    compaction["startTimestamp"] = 0.0;
  if (!compaction.contains("endTimestamp"))
    compaction["endTimestamp"] = to_seconds(said.timestamp);
}

} // namespace

json to_wire_form(const json& stored) {
  auto wire = rename_event(stored, to_camel_case);
  const json::json_pointer range("/actions/compaction");
  if (wire.contains(range) && wire[range].is_object())
    round_times(wire[range]);
  return wire;
}

json to_stored_form(const event& said) {
  auto data = to_adk_json(said);
  auto& actions = data["actions"];
  auto known = json::object();
  for (const auto& [name, field] : actions.items())
    if (is_in(known_actions, name))
      known[name] = field;
  if (const auto found = known.find("compaction");
      found != known.end() && found->is_object())
    drop_revisions(*found, said);
  actions = std::move(known);
  return rename_event(data, to_snake_case);
}

} // namespace troupe::cli
