#include "troupe/agents/resumption.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe {

namespace {

using id_list = std::vector<std::string>;

bool contains(const id_list& ids, std::string_view id) {
  return std::ranges::find(ids, id) != ids.end();
}

error refused(std::string_view id, std::string_view why) {
  return {errc::invalid_argument,
          fmt::format("the function response '{}' {}", id, why)};
}

bool is_id_list(const json& data) {
  return data.is_array() && std::ranges::all_of(data, [](const json& id) {
           return id.is_string();
         });
}

bool is_checkpoint(const json& data);

bool is_lane(const json& data) {
  if (!data.is_object() || !data.value("lane", json()).is_string())
    return false;
  if (data.contains("at"))
    return is_checkpoint(data.at("at"));
  if (data.contains("failed")) {
    const auto& failed = data.at("failed");
    return failed.is_object() && failed.value("code", json()).is_string()
           && failed.value("reason", json()).is_string();
  }
  return data.contains("ended") && data.at("ended").is_object()
         && data.at("ended").value("escalated", json()).is_boolean();
}

// What others have written there is none of ours.
bool is_checkpoint(const json& data) {
  if (!data.is_object() || !data.value("agent", json()).is_string())
    return false;
  if (data.contains("waitsFor"))
    return is_id_list(data.at("waitsFor"));
  if (data.contains("lanes"))
    return data.at("lanes").is_array()
           && std::ranges::all_of(data.at("lanes"), is_lane);
  return data.value("finished", json()).is_number_unsigned()
         && data.value("escalated", json()).is_boolean() && data.contains("at")
         && is_checkpoint(data.at("at"));
}

const json* state_of(const event& said) {
  const auto& extra = said.actions.extra.data();
  if (!extra.is_object())
    return nullptr;
  const auto found = extra.find("agentState");
  return found != extra.end() && found->is_object() ? &*found : nullptr;
}

// A pause that no later run has gone on from.
struct open_pause {
  const event* said = nullptr;
  const json* checkpoint = nullptr;
  id_list waits;
};

// Newest first.
std::vector<open_pause> open_pauses(const event_slice& events) {
  std::vector<open_pause> open;
  id_list over;
  for (auto index = events.size(); index > 0; --index) {
    const auto& said = *events[index - 1];
    const auto* state = state_of(said);
    if (state == nullptr)
      continue;
    if (state->contains("checkpoint") && !contains(over, said.id)
        && is_checkpoint(state->at("checkpoint")))
      open.push_back(
        {&said, &state->at("checkpoint"), waits_of(state->at("checkpoint"))});
    if (const auto before = state->find("resumes");
        before != state->end() && before->is_string())
      over.push_back(before->get<std::string>());
  }
  return open;
}

void collect_waits(const json& checkpoint, id_list& into) {
  if (checkpoint.contains("waitsFor"))
    for (const auto& id : checkpoint.at("waitsFor"))
      into.push_back(id.get<std::string>());
  if (checkpoint.contains("at"))
    collect_waits(checkpoint.at("at"), into);
  if (checkpoint.contains("lanes"))
    for (const auto& lane : checkpoint.at("lanes"))
      if (lane.contains("at"))
        collect_waits(lane.at("at"), into);
}

} // namespace

std::optional<found_call> find_call(const event_slice& events,
                                    std::string_view id) {
  if (id.empty())
    return std::nullopt;
  for (auto index = events.size(); index > 0; --index)
    for (const auto& element : events[index - 1]->content.parts)
      if (const auto* call = element.call(); call != nullptr && call->id == id)
        return found_call{events[index - 1].get(), call};
  return std::nullopt;
}

result<tool_confirmation> read_confirmation(const json& response) {
  auto answer = response;
  // Some clients pack the object into text.
  if (answer.is_object() && answer.size() == 1 && answer.contains("response")
      && answer.at("response").is_string()) {
    auto unpacked = parse_json(answer.at("response").get<std::string>());
    if (!unpacked)
      return unpacked.error();
    answer = std::move(*unpacked);
  }
  if (!answer.is_object() || !answer.contains("confirmed")
      || !answer.at("confirmed").is_boolean())
    return error(errc::invalid_argument,
                 "the answer to a request for confirmation is {\"confirmed\": "
                 "true or false}");
  tool_confirmation read;
  read.confirmed = answer.at("confirmed").get<bool>();
  if (answer.contains("hint") && answer.at("hint").is_string())
    read.hint = answer.at("hint").get<std::string>();
  if (answer.contains("payload"))
    read.payload = value(answer.at("payload"));
  return read;
}

result<void> check_responses(const content& message,
                             const event_slice& events) {
  const auto is_response
    = [](const part& element) { return element.response() != nullptr; };
  if (std::ranges::none_of(message.parts, is_response))
    return {};
  if (!std::ranges::all_of(message.parts, is_response))
    return error(errc::invalid_argument,
                 "a message with function responses holds nothing else");
  const auto pauses = open_pauses(events);
  const open_pause* resumed = nullptr;
  id_list seen;
  for (const auto& element : message.parts) {
    const auto& answer = *element.response();
    if (contains(seen, answer.id))
      return refused(answer.id, "comes twice");
    seen.push_back(answer.id);
    const auto found = find_call(events, answer.id);
    if (!found)
      return refused(answer.id, "answers no call of this session");
    if (found->call->name != answer.name)
      return refused(answer.id,
                     fmt::format("names '{}', but the call is one of '{}'",
                                 answer.name,
                                 found->call->name));
    if (answer.name == confirmation_name)
      if (auto read = read_confirmation(answer.response.data()); !read)
        return refused(answer.id,
                       fmt::format("does not fit: {}", read.error().message()));
    const auto pause
      = std::ranges::find_if(pauses, [&answer](const open_pause& each) {
          return contains(each.waits, answer.id);
        });
    if (pause == pauses.end())
      continue;
    if (resumed != nullptr && resumed != &*pause)
      return refused(answer.id,
                     "goes to another run than those beside it; send a message "
                     "to each");
    resumed = &*pause;
  }
  return {};
}

std::optional<resumption> find_resumption(const event_slice& events,
                                          std::string_view root_name) {
  if (events.empty())
    return std::nullopt;
  const auto& message = events.back().content;
  const auto answers_any = [&message](const open_pause& each) {
    return std::ranges::any_of(message.parts, [&each](const part& element) {
      return element.response() != nullptr
             && contains(each.waits, element.response()->id);
    });
  };
  if (std::ranges::none_of(message.parts, [](const part& element) {
        return element.response() != nullptr;
      }))
    return std::nullopt;
  for (const auto& each : open_pauses(events))
    if (each.said->author == root_name && answers_any(each))
      return resumption{each.said->id, *each.checkpoint};
  return std::nullopt;
}

std::vector<std::string> waits_of(const json& checkpoint) {
  id_list waits;
  collect_waits(checkpoint, waits);
  return waits;
}

event make_pause_event(std::string root_name,
                       const std::optional<json>& checkpoint,
                       const std::optional<resumption>& resumed) {
  auto state = json::object();
  if (checkpoint) {
    state["checkpoint"] = *checkpoint;
    state["waitsFor"] = waits_of(*checkpoint);
  }
  if (resumed)
    state["resumes"] = resumed->event_id;
  auto actions = json::object();
  actions["agentState"] = std::move(state);
  event made;
  made.author = std::move(root_name);
  made.actions.extra = std::move(actions);
  return made;
}

} // namespace troupe
