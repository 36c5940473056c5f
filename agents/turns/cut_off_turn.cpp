#include "troupe/agents/turns/cut_off_turn.hpp"

#include "troupe/agents/turns/delegation.hpp"
#include "troupe/contexts/lanes/event_place.hpp"

#include <algorithm>

namespace troupe {

namespace {

bool has_calls(const event& said) {
  return std::ranges::any_of(said.content.parts, [](const part& element) {
    return element.call() != nullptr;
  });
}

// Returns true if each call of the answer has a response.
bool is_answered(const cut_off_turn& turn) {
  return turn.made == nullptr
         || std::ranges::all_of(
           turn.made->content.parts, [&turn](const part& element) {
             const auto* call = element.call();
             return call == nullptr
                    || std::ranges::find(turn.answered, call->id)
                         != turn.answered.end();
           });
}

void add_pending(const event& said, cut_off_turn& turn) {
  if (const auto* made = fact_in(said, made_fact);
      made != nullptr && made->is_array())
    for (const auto& each : *made)
      if (each.is_string())
        turn.pending.push_back(each.get<std::string>());
}

// Adds the results of tools to the turn.
void add_results(const event& said, cut_off_turn& turn) {
  turn.has_called = true;
  add_pending(said, turn);
  for (const auto& element : said.content.parts)
    if (const auto* response = element.response())
      turn.answered.push_back(response->id);
  if (!said.actions.transfer_to_agent.empty())
    turn.transfer_to_agent = said.actions.transfer_to_agent;
  const bool ends
    = (is_final(said) && !said.content.parts.empty()) || ends_task(said);
  turn.is_over
    = turn.is_over || (ends && is_answered(turn) && turn.pending.empty());
}

} // namespace

cut_off_turn find_cut_off_turn(const std::vector<event_ptr>& own) {
  cut_off_turn turn;
  for (const auto& each : own)
    switch (step_in(*each)) {
    case agent_step::body:
      turn = {};
      turn.made = each;
      turn.is_over = !has_calls(*each);
      break;
    case agent_step::tools:
      add_results(*each, turn);
      break;
    case agent_step::question:
      turn.has_called = true;
      turn.is_over = false;
      turn.asked = each->long_running_tool_ids;
      add_pending(*each, turn);
      break;
    case agent_step::task:
      for (const auto& element : each->content.parts)
        if (const auto* response = element.response())
          turn.answered.push_back(response->id);
      break;
    default:
      break;
    }
  return turn;
}

} // namespace troupe
