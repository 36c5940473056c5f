#include "troupe/agents/open_turn.hpp"

#include "troupe/agents/resumption.hpp"
#include "troupe/agents/tool.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe {

namespace {

bool is_question(const function_call& call) {
  return call.name == confirmation_name;
}

bool has_own_calls(const event& said) {
  return std::ranges::any_of(said.content.parts, [](const part& element) {
    return element.call() != nullptr && !is_question(*element.call());
  });
}

// The response in the newest events, those from `first` on, or null.
const function_response* find_response(const event_slice& events,
                                       std::size_t first,
                                       std::string_view id) {
  for (auto index = events.size(); index > first; --index)
    for (const auto& element : events[index - 1]->content.parts)
      if (const auto* answer = element.response();
          answer != nullptr && answer->id == id)
        return answer;
  return nullptr;
}

json original_of(const function_call& question) {
  const auto& args = question.args.data();
  return args.is_object() ? args.value("originalFunctionCall", json::object())
                          : json::object();
}

// The newest question of `author` about the call of that id, or null.
const function_call* find_question(const event_slice& events,
                                   std::size_t first,
                                   std::string_view author,
                                   std::string_view id) {
  for (auto index = events.size(); index > first; --index) {
    if (events[index - 1]->author != author)
      continue;
    for (const auto& element : events[index - 1]->content.parts) {
      const auto* asked = element.call();
      if (asked == nullptr || !is_question(*asked))
        continue;
      const auto original = original_of(*asked);
      if (original.is_object() && original.value("id", json()) == id)
        return asked;
    }
  }
  return nullptr;
}

result<tool_confirmation> decide(const function_call& call,
                                 const function_call& question,
                                 const function_response& answer) {
  const auto original = original_of(question);
  if (original.value("name", json()) != call.name
      || !equal(original.value("args", json::object()), call.args.data()))
    return error(errc::tool_failed,
                 fmt::format("the user was asked about another call than this "
                             "one of '{}'",
                             call.name));
  return read_confirmation(answer.response.data());
}

} // namespace

open_turn find_open_turn(const event_slice& events,
                         std::string_view agent_name,
                         std::string_view branch) {
  open_turn turn;
  auto place = events.size();
  while (place > 0
         && !(events[place - 1]->author == agent_name
              && events[place - 1]->branch == branch
              && has_own_calls(*events[place - 1])))
    --place;
  if (place == 0)
    return turn;
  const auto& made = *events[place - 1];
  for (const auto& element : made.content.parts) {
    const auto* call = element.call();
    if (call == nullptr || find_response(events, place, call->id) != nullptr)
      continue;
    if (const auto* asked
        = find_question(events, place, agent_name, call->id)) {
      if (const auto* answer = find_response(events, place, asked->id))
        turn.decided.push_back({*call, decide(*call, *asked, *answer)});
      else
        turn.awaited.push_back(asked->id);
    } else if (std::ranges::find(made.long_running_tool_ids, call->id)
               != made.long_running_tool_ids.end()) {
      turn.awaited.push_back(call->id);
    }
  }
  for (auto index = place; index < events.size(); ++index)
    if (const auto& said = *events[index];
        said.author == agent_name && said.branch == branch
        && !said.actions.transfer_to_agent.empty())
      turn.transfer_to_agent = said.actions.transfer_to_agent;
  return turn;
}

bool is_pending(const tool_call& answered) {
  if (answered.requested)
    return true;
  return answered.which != nullptr && answered.which->options().long_running
         && answered.outcome && answered.outcome->is_null();
}

std::optional<event>
make_confirmation_event(const std::vector<tool_call>& answered,
                        environment& environment) {
  event asks;
  asks.content.role = "model";
  auto requested = json::object();
  for (const auto& each : answered) {
    if (!each.requested)
      continue;
    auto shown = json::object();
    shown["hint"] = each.requested->hint;
    shown["confirmed"] = false;
    if (!each.requested->payload.is_null())
      shown["payload"] = each.requested->payload.data();
    auto original = json::object();
    original["id"] = each.call.id;
    original["name"] = each.call.name;
    original["args"] = each.call.args.data();
    auto args = json::object();
    args["originalFunctionCall"] = std::move(original);
    args["toolConfirmation"] = shown;
    requested[each.call.id] = std::move(shown);
    const auto id = "adk-" + environment.new_id();
    asks.content.parts.emplace_back(
      function_call{id, std::string(confirmation_name), std::move(args)});
    asks.long_running_tool_ids.push_back(id);
  }
  if (asks.content.parts.empty())
    return std::nullopt;
  auto actions = json::object();
  actions["requestedToolConfirmations"] = std::move(requested);
  asks.actions.extra = std::move(actions);
  return asks;
}

} // namespace troupe
