#include "troupe/agents/turns/step_times.hpp"

#include <utility>

namespace troupe {

namespace {

constexpr auto custom_metadata = "customMetadata";
constexpr auto own_field = "troupe";

std::int64_t microseconds(timestamp time) {
  return time.time_since_epoch().count();
}

json to_json(const step_time& step) {
  auto written = json::object();
  written["kind"] = step.kind == step_kind::model ? "model" : "tool";
  written["name"] = step.name;
  if (!step.call_id.empty())
    written["callId"] = step.call_id;
  written["began"] = microseconds(step.began);
  written["ended"] = microseconds(step.ended);
  return written;
}

// Unset if the data has another form, because other programs may write there,
// too.
std::optional<step_time> step_from(const json& data) {
  const auto time = [&data](const char* name) -> std::optional<timestamp> {
    const auto found = data.find(name);
    if (found == data.end() || !found->is_number_integer())
      return std::nullopt;
    return timestamp(std::chrono::microseconds(found->get<std::int64_t>()));
  };
  const auto text = [&data](const char* name) {
    const auto found = data.find(name);
    return found != data.end() && found->is_string() ? found->get<std::string>()
                                                     : std::string();
  };
  if (!data.is_object())
    return std::nullopt;
  const auto kind = text("kind");
  const auto began = time("began");
  const auto ended = time("ended");
  if ((kind != "model" && kind != "tool") || !began || !ended || *ended < *began
      || *began < timestamp())
    return std::nullopt;
  step_time step;
  step.kind = kind == "model" ? step_kind::model : step_kind::tool;
  step.name = text("name");
  step.call_id = text("callId");
  step.began = *began;
  step.ended = *ended;
  return step;
}

} // namespace

void tell_steps(event& said, std::span<const step_time> steps) {
  json told;
  for (const auto& step : steps)
    if (step.began != timestamp() && step.ended >= step.began)
      told.push_back(to_json(step));
  if (told.is_null())
    return;
  auto fields = said.extra.is_null() ? json::object() : said.extra.data();
  auto& metadata = fields[custom_metadata];
  if (!metadata.is_null() && !metadata.is_object())
    return; // A callback wrote another value.
  auto& ours = metadata[own_field];
  if (!ours.is_object())
    ours = json::object();
  ours["steps"] = std::move(told);
  said.extra = std::move(fields);
}

std::vector<step_time> steps_of(const event& said) {
  std::vector<step_time> steps;
  if (!said.extra.data().is_object())
    return steps;
  const json* at = &said.extra.data();
  for (const auto* name : {custom_metadata, own_field, "steps"}) {
    const auto found = at->find(name);
    if (found == at->end())
      return steps;
    at = &*found;
    if (!at->is_object() && !at->is_array())
      return steps;
  }
  if (at->is_array())
    for (const auto& each : *at)
      if (auto step = step_from(each))
        steps.push_back(std::move(*step));
  return steps;
}

std::vector<step_time> steps_of(std::span<const tool_call> answered) {
  std::vector<step_time> steps;
  for (const auto& done : answered) {
    auto& step = steps.emplace_back();
    step.kind = step_kind::tool;
    step.name = done.call.name;
    step.call_id = done.call.id;
    step.began = done.began;
    step.ended = done.ended;
  }
  return steps;
}

} // namespace troupe
