#include "troupe/contexts/lanes/recovered_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace troupe {

namespace {

// Key of the last text at a place on a branch. Neither contains a line break.
std::string said_key(std::string_view place, std::string_view branch) {
  return fmt::format("{}\n{}", place, branch);
}

// Returns true if the event has text that counts as the words of its agent: no
// thought, and not the input of a workflow's node.
bool says_text(const event& said) {
  const auto* record = fact_in(said, "workflow");
  if (record != nullptr && record->is_object() && record->contains("input"))
    return false;
  return std::ranges::any_of(said.content.parts, [](const part& element) {
    return element.text() != nullptr && !element.thought;
  });
}

// The number that a text consists of; 0 for another text.
std::uint64_t number_in(std::string_view digits) {
  std::uint64_t number = 0;
  const auto* const last = digits.data() + digits.size();
  const auto [end, failed] = std::from_chars(digits.data(), last, number);
  return failed == std::errc() && end == last ? number : 0;
}

std::string text_in(const json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found != object.end() && found->is_string() ? found->get<std::string>()
                                                     : std::string();
}

// The failures that an event tells, by place.
std::vector<std::pair<std::string, error>> caught_in(const event& said) {
  std::vector<std::pair<std::string, error>> all;
  if (const auto* told = fact_in(said, caught_fact);
      told != nullptr && told->is_array())
    for (const auto& each : *told)
      all.emplace_back(
        text_in(each, "place"),
        error(errc_of(text_in(each, "code")), text_in(each, "message")));
  return all;
}

// Calls `visit` with each place around `path`, the innermost first, and whether
// an agent stands there. Between an agent that handed over and its successor
// (`chat@1.1/billing@1`) there is none.
template <class Visit>
void for_each_place(std::string_view path, const Visit& visit) {
  for (;;) {
    visit(path);
    const auto slash = path.rfind('/');
    if (slash == path.npos)
      return;
    path = path.substr(0, slash);
  }
}

// The place of the first agent of a call, if `place` ends with the number of a
// hand-over; else empty.
std::string_view first_of_call(std::string_view place) {
  const auto mark = place.rfind('@');
  const auto dot = place.rfind('.');
  return mark != place.npos && dot != place.npos && dot > mark
           ? place.substr(0, dot)
           : std::string_view();
}

} // namespace

bool recovered_run::part::has(agent_step step) const {
  return std::ranges::any_of(
    own, [step](const event_ptr& each) { return step_in(*each) == step; });
}

recovered_run::recovered_run(const event_slice& events,
                             std::string_view invocation) {
  for (const auto& each : events)
    if (each->invocation_id == invocation && each->author != "user"
        && fact_in(*each, recovers_fact) == nullptr)
      add(each);
  // Most runs have no event that escalates, and need no search.
  if (std::ranges::any_of(parts_, [](const auto& known) {
        return std::ranges::any_of(known.second.own, [](const auto& each) {
          return each->actions.escalate;
        });
      }))
    note_escalations();
}

void recovered_run::add(const event_ptr& said) {
  const auto number = ++last_;
  by_id_[said->id] = number;
  if (const auto slash = said->id.rfind('/'); slash != std::string::npos)
    if (const auto count
        = number_in(std::string_view(said->id).substr(slash + 1))) {
      auto& most = numbered_[said->id.substr(0, slash)];
      most = std::max(most, count);
    }
  for (const auto& each : caught_in(*said))
    caught_.insert(each);
  if (const auto written = temp_names_in(*said); !written.names.empty()) {
    auto& names = temp_[written.lane];
    for (const auto& name : written.names)
      if (std::ranges::find(names, name) == names.end())
        names.push_back(name);
  }
  const auto path = path_in(*said);
  if (path.empty()) {
    outside_.push_back(said);
    return;
  }
  const bool has_text = says_text(*said);
  if (fact_in(*said, result_fact) != nullptr)
    if (const auto* lane = fact_in(*said, lane_fact);
        lane != nullptr && lane->is_string())
      results_[lane->get<std::string>()] = said;
  std::string_view newest; // The place below, if this is its first event.
  std::string_view outermost;
  std::string_view inner;  // The place below.
  std::string_view behind; // The place below, if it took over.
  const bool is_pause = step_in(*said) == agent_step::pause;
  for_each_place(path, [&](std::string_view place) {
    outermost = place;
    if (const auto first = first_of_call(place); !first.empty()) {
      // Not the place of an agent.
      if (!is_pause)
        calls_[std::string(first)] = number;
      outermost = first;
      behind = inner;
      newest = {};
      return;
    }
    auto& known = parts_[std::string(place)];
    if (known.first == 0)
      known.first = number;
    if (!is_pause)
      known.last = number;
    if (place == path) {
      known.own.push_back(said);
      known.numbers.push_back(number);
    } else if (!behind.empty()) {
      if (std::ranges::find(known.behind, behind) == known.behind.end())
        known.behind.emplace_back(behind);
      behind = {};
    } else if (!newest.empty())
      known.below.emplace_back(newest);
    newest = known.first == number ? place : std::string_view();
    inner = place;
    if (!is_pause)
      calls_[std::string(place)] = number;
    if (has_text)
      said_[said_key(place, said->branch)] = said;
  });
  if (start_.empty())
    start_ = outermost;
}

const recovered_run::part* recovered_run::at(std::string_view place) const {
  const auto found = parts_.find(std::string(place));
  return found == parts_.end() ? nullptr : &found->second;
}

std::uint64_t recovered_run::last_of_call(std::string_view first) const {
  const auto found = calls_.find(std::string(first));
  return found == calls_.end() ? 0 : found->second;
}

bool recovered_run::has_gone_on(std::string_view above,
                                std::string_view first) const {
  const auto last = last_of_call(first);
  const auto* around = at(above);
  return last > 0 && around != nullptr && around->last > last;
}

std::uint64_t recovered_run::number_of(const std::string& id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? 0 : found->second;
}

std::uint64_t recovered_run::last_numbered(const std::string& key) const {
  const auto found = numbered_.find(key);
  return found == numbered_.end() ? 0 : found->second;
}

const error* recovered_run::caught_at(std::string_view place) const {
  const auto found = caught_.find(std::string(place));
  return found == caught_.end() ? nullptr : &found->second;
}

// Returns true if the place is that of an attempt of a visit, or of its first
// one, that has failed.
bool recovered_run::has_failed(std::string_view place) const {
  const auto mark = place.find_last_of("~/");
  const bool is_later = mark != place.npos && place[mark] == '~';
  const auto attempt = is_later ? number_in(place.substr(mark + 1)) : 1;
  const auto* visit = at(is_later ? place.substr(0, mark) : place);
  return visit != nullptr
         && std::ranges::any_of(visit->own, [attempt](const event_ptr& each) {
              const auto* record = fact_in(*each, "workflow");
              if (record == nullptr || !record->is_object())
                return false;
              const auto failed = record->find("attempt");
              return failed != record->end() && *failed == attempt;
            });
}

// The innermost places come first: a place counts those below it. Lanes and
// attempts of nodes that failed do not, nor do agents whose failure was caught
// and those that run for a tool.
void recovered_run::note_escalations() {
  std::vector<std::string_view> places;
  places.reserve(parts_.size());
  for (const auto& [place, known] : parts_)
    places.push_back(place);
  std::ranges::sort(places, [](std::string_view one, std::string_view other) {
    return std::ranges::count(one, '/') > std::ranges::count(other, '/');
  });
  for (const auto place : places) {
    auto& known = parts_.at(std::string(place));
    for (const auto& each : known.own)
      known.has_escalated
        = known.has_escalated
          || (each->actions.escalate && step_in(*each) != agent_step::failure);
    if (has_failed(place))
      continue;
    for (const auto* list : {&known.below, &known.behind})
      for (const auto& each : *list) {
        const auto& child = parts_.at(each);
        // The segment of a call is its id.
        const bool is_agent
          = each.find('@', each.rfind('/') + 1) != std::string::npos;
        known.has_escalated
          = known.has_escalated
            || (child.has_escalated && is_agent && !caught_.contains(each)
                && !child.has(agent_step::failure));
      }
  }
}

event_ptr recovered_run::last_said(std::string_view place,
                                   std::string_view branch) const {
  const auto found = said_.find(said_key(place, branch));
  return found == said_.end() ? nullptr : found->second;
}

std::optional<json> recovered_run::result_at(const std::string& place) const {
  const auto found = results_.find(place);
  if (found == results_.end())
    return std::nullopt;
  return *fact_in(*found->second, result_fact);
}

std::vector<std::string>
recovered_run::temp_names_of(const std::string& lane) const {
  const auto found = temp_.find(lane);
  return found == temp_.end() ? std::vector<std::string>() : found->second;
}

} // namespace troupe
