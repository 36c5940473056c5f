#include "troupe/contexts/lanes/event_place.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace troupe {

namespace {

constexpr const char* metadata = "customMetadata";
constexpr const char* own = "troupe";

constexpr const char* temp_fact = "temp";
constexpr const char* parent_fact = "traceparent";
constexpr const char* state_fact = "tracestate";

constexpr char rewind_mark = '~';

// In the order of `agent_step`. Stored, so they never change.
constexpr std::array<std::string_view, 12> step_words{"",
                                                      "before_run",
                                                      "after_run",
                                                      "before_agent",
                                                      "after_agent",
                                                      "state",
                                                      "pause",
                                                      "tools",
                                                      "question",
                                                      "task",
                                                      "items",
                                                      "failure"};

const json* member(const json* of, const char* name) {
  if (of == nullptr || !of->is_object())
    return nullptr;
  const auto found = of->find(name);
  return found == of->end() ? nullptr : &*found;
}

// The object in field `name`. Another value there is replaced.
json& object_in(json& of, const char* name) {
  auto& field = of[name];
  if (!field.is_object())
    field = json::object();
  return field;
}

// The events of a visit are the same in each attempt.
std::string_view without_attempt(std::string_view place) {
  const auto mark = place.find_last_of("~/");
  return mark != place.npos && place[mark] == '~' ? place.substr(0, mark)
                                                  : place;
}

json fields_of(event& said) {
  return said.extra.is_null() ? json::object() : said.extra.data();
}

} // namespace

std::string_view path_in(const event& said) {
  const auto* path = member(member(&said.extra.data(), "nodeInfo"), "path");
  return path != nullptr && path->is_string()
           ? std::string_view(path->get_ref<const std::string&>())
           : std::string_view();
}

void set_place(event& said, const std::string& wanted, agent_step step) {
  const auto place = without_attempt(wanted);
  const bool lacks_place = !place.empty() && path_in(said).empty();
  const bool lacks_step
    = step != agent_step::body && fact_in(said, "step") == nullptr;
  if (!lacks_place && !lacks_step)
    return;
  auto fields = fields_of(said);
  if (lacks_place)
    object_in(fields, "nodeInfo")["path"] = place;
  if (lacks_step)
    object_in(object_in(fields, metadata), own)["step"]
      = std::string(step_words.at(static_cast<std::size_t>(step)));
  said.extra = std::move(fields);
}

agent_step step_in(const event& said) {
  const auto* word = fact_in(said, "step");
  if (word == nullptr || !word->is_string())
    return agent_step::body;
  const auto found
    = std::ranges::find(step_words, word->get_ref<const std::string&>());
  return found == step_words.end()
           ? agent_step::body
           : static_cast<agent_step>(found - step_words.begin());
}

void mark_answer(event& said) {
  set_fact(said, "answers", true);
}

bool is_answer(const event& said) {
  const auto* mark = fact_in(said, "answers");
  return mark != nullptr && *mark == true;
}

void set_temp_names(event& said, const temp_names& written) {
  if (written.names.empty())
    return;
  set_fact(said, temp_fact, written.names);
  if (!written.lane.empty())
    set_fact(said, lane_fact, written.lane);
}

temp_names temp_names_in(const event& said) {
  temp_names read;
  if (const auto* lane = fact_in(said, lane_fact);
      lane != nullptr && lane->is_string())
    read.lane = lane->get<std::string>();
  if (const auto* names = fact_in(said, temp_fact);
      names != nullptr && names->is_array())
    for (const auto& each : *names)
      if (each.is_string())
        read.names.push_back(each.get<std::string>());
  return read;
}

void set_cause(event& message, const trace_context& cause) {
  if (cause.parent.empty())
    return;
  set_fact(message, parent_fact, cause.parent);
  if (!cause.state.empty())
    set_fact(message, state_fact, cause.state);
}

trace_context cause_in(const event& message) {
  const auto text = [&message](const char* name) {
    const auto* found = fact_in(message, name);
    return found != nullptr && found->is_string() ? found->get<std::string>()
                                                  : std::string();
  };
  // A program that appends events may have written anything.
  return accept_trace_context(text(parent_fact), text(state_fact));
}

json without_moment(const event& said) {
  auto fields = said.extra.data();
  if (fact_in(said, temp_fact) == nullptr
      && fact_in(said, result_fact) == nullptr
      && fact_in(said, caught_fact) == nullptr
      && fact_in(said, due_fact) == nullptr)
    return fields;
  auto& facts = fields[metadata][own];
  for (const auto* name : {temp_fact, result_fact, lane_fact, caught_fact})
    facts.erase(name);
  // A wait is still none of another event.
  if (facts.contains(due_fact))
    facts[due_fact] = nullptr;
  if (facts.empty())
    fields[metadata].erase(own);
  if (fields[metadata].empty())
    fields.erase(metadata);
  return fields.empty() ? json() : fields;
}

void set_fact(event& said, const char* name, json data) {
  auto fields = fields_of(said);
  object_in(object_in(fields, metadata), own)[name] = std::move(data);
  said.extra = std::move(fields);
}

const json* fact_in(const event& said, const char* name) {
  return member(member(member(&said.extra.data(), metadata), own), name);
}

std::string place_below(std::string_view above,
                        std::string_view name,
                        std::uint64_t number) {
  return fmt::format(
    "{}{}{}@{}", above, above.empty() ? "" : "/", name, number);
}

std::string place_behind(std::string_view first,
                         std::uint64_t count,
                         std::string_view name) {
  return fmt::format("{}.{}/{}@1", first, count, name);
}

std::string place_of_attempt(const std::string& visit, std::uint64_t attempt) {
  return attempt == 1 ? visit : fmt::format("{}~{}", visit, attempt);
}

void remove_place(event& said) {
  if (said.extra.is_null())
    return;
  const auto* known = fact_in(said, due_fact);
  auto due = known != nullptr ? *known : json();
  auto fields = said.extra.data();
  if (const auto info = fields.find("nodeInfo");
      info != fields.end() && info->is_object())
    info->erase("path");
  if (const auto all = fields.find(metadata);
      all != fields.end() && all->is_object())
    all->erase(own);
  said.extra = std::move(fields);
  if (!due.is_null())
    set_fact(said, due_fact, std::move(due));
}

std::string_view name_at(std::string_view place) {
  if (const auto slash = place.rfind('/'); slash != place.npos)
    place.remove_prefix(slash + 1);
  return place.substr(0, place.rfind('@'));
}

std::string
placed_id(std::uint64_t rewound, const event_slice& live, std::string id) {
  if (rewound == 0)
    return id;
  for (auto index = live.size(); index > 0; --index)
    if (is_placed(live[index - 1]->id, id))
      return live[index - 1]->id;
  return fmt::format("{}{}{}", id, rewind_mark, rewound);
}

bool is_placed(std::string_view id, std::string_view base) {
  if (!id.starts_with(base))
    return false;
  const auto mark = id.substr(base.size());
  return mark.empty()
         || (mark.size() > 1 && mark.front() == rewind_mark
             && mark.find_first_not_of("0123456789", 1) == mark.npos);
}

} // namespace troupe
