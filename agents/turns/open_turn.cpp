#include "troupe/agents/turns/open_turn.hpp"

#include "troupe/agents/tool.hpp"
#include "troupe/agents/turns/question.hpp"
#include "troupe/agents/turns/resumption.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe {

namespace {

json original_of(const function_call& question) {
  const auto& args = question.args.data();
  auto original = args.is_object()
                    ? args.value("originalFunctionCall", json::object())
                    : json::object();
  return original.is_object() ? original : json::object();
}

// The events of one agent on one branch, and the user's answers to them.
class agent_history {
public:
  agent_history(const event_slice& events,
                std::string_view agent_name,
                std::string_view branch)
    : events_(events),
      agent_name_(agent_name),
      branch_(branch) {}

  bool is_own(const event& said) const {
    return said.author == agent_name_ && said.branch == branch_;
  }

  // Index of the newest event of the agent that holds the call `id`; the number
  // of events if there is none.
  std::size_t place_of(std::string_view id) const {
    for (auto index = events_.size(); index > 0; --index)
      if (const auto& said = *events_[index - 1];
          is_own(said) && call_in(said, id) != nullptr)
        return index - 1;
    return events_.size();
  }

  // The newest response after index `place`, by the agent or the user; or null.
  const function_response* response_to(std::string_view id,
                                       std::size_t place) const {
    return find_response(
      events_, id, place + 1, branch_agent{agent_name_, branch_});
  }

  // The question after `place` about call `id`, among the questions in `asked`;
  // or null.
  const function_call*
  question_about(std::string_view id,
                 std::size_t place,
                 const std::vector<std::string>& asked) const {
    for (auto index = events_.size(); index > place + 1; --index)
      if (const auto& said = *events_[index - 1]; is_own(said))
        for (const auto& element : said.content.parts)
          if (const auto* call = element.call();
              call != nullptr && call->name == confirmation_name
              && std::ranges::find(asked, call->id) != asked.end()
              && asked_about(*call) == id)
            return call;
    return nullptr;
  }

  static const function_call* call_in(const event& said, std::string_view id) {
    for (const auto& element : said.content.parts)
      if (const auto* call = element.call(); call != nullptr && call->id == id)
        return call;
    return nullptr;
  }

  const event_slice& events() const noexcept { return events_; }

private:
  const event_slice& events_;
  const std::string_view agent_name_;
  const std::string_view branch_;
};

// Index of the event of the turn; the number of events if there is none.
std::size_t place_of_turn(const agent_history& history,
                          const std::vector<std::string>& ids) {
  const auto none = history.events().size();
  for (const auto& id : ids) {
    const auto place = history.place_of(id);
    if (place == none)
      continue;
    const auto& call = *agent_history::call_in(*history.events()[place], id);
    if (call.name != confirmation_name)
      return place;
    if (const auto original = asked_about(call); !original.empty())
      return history.place_of(original);
  }
  return none;
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

std::string asked_about(const function_call& question) {
  const auto original = original_of(question);
  const auto id = original.find("id");
  return id != original.end() && id->is_string() ? id->get<std::string>()
                                                 : std::string();
}

open_turn find_open_turn(const event_slice& events,
                         std::string_view agent_name,
                         std::string_view branch,
                         const std::vector<std::string>& ids) {
  open_turn turn;
  const agent_history history(events, agent_name, branch);
  const auto place = place_of_turn(history, ids);
  if (place == events.size())
    return turn;
  const auto& made = *events[place];
  for (const auto& element : made.content.parts) {
    const auto* call = element.call();
    if (call == nullptr || history.response_to(call->id, place) != nullptr)
      continue;
    if (const auto* asked = history.question_about(call->id, place, ids)) {
      if (const auto* answer = history.response_to(asked->id, place))
        turn.decided.push_back({*call, decide(*call, *asked, *answer)});
      else
        turn.awaited.push_back(asked->id);
    } else if (is_long_running({&made, call})) {
      turn.awaited.push_back(call->id);
    }
  }
  // Search up to the agent's next turn.
  for (auto index = place + 1; index < events.size(); ++index) {
    const auto& said = *events[index];
    if (!history.is_own(said))
      continue;
    if (std::ranges::any_of(said.content.parts, [](const part& each) {
          return each.text() != nullptr
                 || (each.call() != nullptr
                     && each.call()->name != confirmation_name);
        }))
      break;
    if (!said.actions.transfer_to_agent.empty())
      turn.transfer_to_agent = said.actions.transfer_to_agent;
  }
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
