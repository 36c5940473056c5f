#include "troupe/agents/open_call.hpp"

#include "troupe/agents/turns/resumption.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe {

namespace {

// A field of an object, or null.
json field_in(const json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found == object.end() ? json() : *found;
}

std::string text_or_empty(const json& data) {
  return data.is_string() ? data.get<std::string>() : std::string();
}

open_call read_call(const found_call& found) {
  open_call read;
  read.id = found.call->id;
  read.tool = found.call->name;
  read.args = found.call->args;
  read.agent = found.event->author;
  if (found.call->name != confirmation_name)
    return read;
  const auto asked = field_in(found.call->args.data(), "toolConfirmation");
  auto& question = read.question.emplace();
  question.hint = text_or_empty(field_in(asked, "hint"));
  question.payload = field_in(asked, "payload");
  const auto original
    = field_in(found.call->args.data(), "originalFunctionCall");
  read.tool = text_or_empty(field_in(original, "name"));
  read.args = field_in(original, "args");
  return read;
}

content message_to(const open_call& call, std::string name, json response) {
  return {
    "user",
    {part(function_response(call.id, std::move(name), std::move(response)))}};
}

content decide_call(const open_call& call, bool confirmed, json payload) {
  if (!call.question)
    throw error(errc::invalid_argument,
                fmt::format("the call of '{}' waits for a result, not for a "
                            "permission: use answer(call, result)",
                            call.tool));
  json response{{"confirmed", confirmed}};
  if (!payload.is_null())
    response["payload"] = std::move(payload);
  return message_to(call, std::string(confirmation_name), std::move(response));
}

} // namespace

std::vector<open_call> open_calls(const event_slice& events) {
  std::vector<open_call> open;
  for (const auto& id : open_ids(events))
    if (const auto found = find_call(events.live(), id))
      open.push_back(read_call(*found));
  return open;
}

content allow(const open_call& call, json payload) {
  return decide_call(call, true, std::move(payload));
}

content deny(const open_call& call, json payload) {
  return decide_call(call, false, std::move(payload));
}

content answer(const open_call& call, json result) {
  if (call.question)
    throw error(errc::invalid_argument,
                fmt::format("the call of '{}' waits for a permission, not for "
                            "a result: use allow(call) or deny(call)",
                            call.tool));
  if (!result.is_object())
    result = json{{"result", std::move(result)}};
  return message_to(call, call.tool, std::move(result));
}

content join_answers(const std::vector<content>& messages) {
  content joined("user", {});
  for (const auto& each : messages)
    joined.parts.insert(
      joined.parts.end(), each.parts.begin(), each.parts.end());
  return joined;
}

} // namespace troupe
