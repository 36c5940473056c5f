#include "troupe/actors/runs/recovered_agent.hpp"

#include "troupe/actors/running/shared.hpp"
#include "troupe/actors/running/temp_space.hpp"
#include "troupe/agents/turns/cut_off_turn.hpp"
#include "troupe/agents/turns/node_event.hpp"
#include "troupe/agents/turns/recovery.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace troupe::actors {

namespace {

// The number of the call at a place.
std::uint64_t number_at(std::string_view place) {
  const auto digits = place.substr(place.rfind('@') + 1);
  std::uint64_t number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

[[noreturn]] void throw_changed(const lane_actor& lane,
                                const agent_place& place,
                                const std::string& difference) {
  lane.shared_run()->is_refused = true;
  throw error(errc::conflict,
              fmt::format("cannot recover the run: the program was changed "
                          "since it began. At {}, {}; recover the run with the "
                          "agents that it began with, or start a new one",
                          place.own,
                          difference));
}

// Requires that the agents below are those of the program, in its order.
void check_below(const lane_actor& lane,
                 const agent_place& place,
                 const agent& which,
                 const recovered_run::part& left,
                 bool has_order) {
  const auto& agents = which.sub_agents();
  std::pair<std::uint64_t, std::size_t> newest{0, 0};
  std::string_view newest_name;
  for (const auto& each : left.below) {
    const auto name = name_at(each);
    const auto found = std::ranges::find(agents, name, &agent::name);
    if (found == agents.end())
      throw_changed(
        lane,
        place,
        fmt::format("'{}' has called '{}', which is not below it now",
                    which.name(),
                    name));
    if (!has_order || std::ranges::count(agents, name, &agent::name) > 1)
      continue;
    const std::pair next{number_at(each),
                         static_cast<std::size_t>(found - agents.begin())};
    if (next < newest)
      throw_changed(lane,
                    place,
                    fmt::format("'{}' has called '{}' before '{}', and now "
                                "has them in another order",
                                which.name(),
                                newest_name,
                                name));
    newest = next;
    newest_name = name;
  }
}

} // namespace

const recovered_run::part* left_at(const lane_actor& lane,
                                   const agent_place& place) {
  const auto* recovered = lane.recovered();
  return recovered != nullptr ? recovered->at(place.own) : nullptr;
}

bool has_ended(const lane_actor& lane,
               const agent_place& place,
               const recovered_run::part& left) {
  const auto& recovered = *lane.recovered();
  return left.has(agent_step::after_agent)
         || std::ranges::any_of(left.own,
                                [](const event_ptr& each) {
                                  return is_answer(*each)
                                         && step_in(*each)
                                              == agent_step::before_agent;
                                })
         || recovered.last_of_call(place.first) > left.last
         || (place.in_order && recovered.has_gone_on(place.above, place.first));
}

bool has_ended_body(const agent& which, const recovered_run::part& left) {
  if (left.has(agent_step::state))
    return true;
  if (std::holds_alternative<llm_options>(which.kind())) {
    const auto turn = find_cut_off_turn(left.own);
    return turn.is_over && turn.transfer_to_agent.empty();
  }
  if (std::holds_alternative<compiled_workflow>(which.kind()))
    return std::ranges::any_of(left.own, [](const event_ptr& each) {
      const auto told = record_in(*each);
      return told && told->is == workflow_record::kind::over;
    });
  return false;
}

std::uint64_t last_before(const recovered_run::part& left) {
  std::uint64_t last = 0;
  for (std::size_t index = 0; index < left.own.size(); ++index)
    if (step_in(*left.own[index]) == agent_step::before_agent)
      last = left.numbers[index];
  return last;
}

std::string successor_in(const recovered_run::part& left) {
  for (auto each = left.own.rbegin(); each != left.own.rend(); ++each)
    if (const auto& name = (*each)->actions.transfer_to_agent;
        !name.empty() && step_in(**each) == agent_step::tools)
      return name;
  return {};
}

bool has_escalated_itself(const recovered_run::part& left) {
  return std::ranges::any_of(
    left.own, [](const event_ptr& each) { return each->actions.escalate; });
}

void restore_words(lane_actor& lane,
                   const agent_place& place,
                   const std::string& branch,
                   const recovered_run::part& left) {
  if (const auto words = lane.recovered()->last_said(place.own, branch))
    lane.hear(words);
  for (const auto& each : left.own)
    if (auto told = record_in(*each);
        told && told->is == workflow_record::kind::over)
      lane.set_output(std::move(told->data));
}

void check_left(const lane_actor& lane,
                const agent_place& place,
                const agent& which,
                const recovered_run::part& left) {
  const auto& kind = which.kind();
  const bool is_ordered = std::holds_alternative<sequential_options>(kind)
                          || std::holds_alternative<loop_options>(kind);
  const bool has_lanes = std::holds_alternative<parallel_options>(kind)
                         || std::holds_alternative<map_options>(kind);
  if (is_ordered || has_lanes) {
    if (left.has(agent_step::body))
      throw_changed(
        lane,
        place,
        fmt::format("'{}' was an agent of another kind, which made events "
                    "itself",
                    which.name()));
    check_below(lane, place, which, left, is_ordered);
  }
  const auto& lane_place = lane.temp()->place();
  if (lane_place.empty() || lane_place != place.first)
    return;
  const auto lost = lane.recovered()->temp_names_of(lane_place);
  if (lost.empty() || lane.shared_run()->options.allow_lost_temp)
    return;
  lane.shared_run()->is_refused = true;
  throw lost_temp(lane.facts().invocation_id, lost);
}

} // namespace troupe::actors
