#include "troupe/telemetry/runs/message_form.hpp"

#include <algorithm>
#include <utility>

namespace troupe::telemetry {

namespace {

json part_form(const part& said) {
  if (const auto* text = said.text())
    return json::object(
      {{"type", said.thought ? "reasoning" : "text"}, {"content", *text}});
  if (const auto* call = said.call())
    return json::object({{"type", "tool_call"},
                         {"id", call->id},
                         {"name", call->name},
                         {"arguments", call->args.data()}});
  if (const auto* answer = said.response())
    return json::object({{"type", "tool_call_response"},
                         {"id", answer->id},
                         {"response", answer->response.data()}});
  // Media, code and the like: the name of the wire field says the kind.
  const auto& other = std::get<value>(said.body).data();
  auto form = json::object({{"type", "other"}});
  if (other.is_object() && !other.empty())
    form["type"] = other.begin().key();
  return form;
}

json message_form(const content& said) {
  const bool is_answer = std::ranges::any_of(
    said.parts, [](const part& each) { return each.response() != nullptr; });
  const auto* role = is_answer              ? "tool"
                     : said.role == "model" ? "assistant"
                                            : "user";
  auto parts = json::array();
  for (const auto& each : said.parts)
    parts.push_back(part_form(each));
  return json::object({{"role", role}, {"parts", std::move(parts)}});
}

} // namespace

std::string text_of(const json& data) {
  return data.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string input_messages(const model_request& asked) {
  auto messages = json::array();
  for (const auto& each : asked.contents)
    messages.push_back(message_form(*each));
  return text_of(messages);
}

std::string output_messages(const model_response& answer,
                            const std::string& finish_reason) {
  auto message = message_form(answer.content);
  message["role"] = "assistant";
  message["finish_reason"] = finish_reason;
  auto messages = json::array();
  messages.push_back(std::move(message));
  return text_of(messages);
}

std::string system_instructions(const model_request& asked) {
  auto parts = json::array();
  if (!asked.system_instruction.empty())
    parts.push_back(
      json::object({{"type", "text"}, {"content", asked.system_instruction}}));
  return text_of(parts);
}

std::string tool_definitions(const model_request& asked) {
  auto tools = json::array();
  for (const auto& each : asked.tools)
    tools.push_back(json::object({{"type", "function"},
                                  {"name", each.name},
                                  {"description", each.description}}));
  return text_of(tools);
}

} // namespace troupe::telemetry
