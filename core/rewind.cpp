#include "troupe/core/rewind.hpp"

#include <fmt/format.h>

#include <string_view>
#include <unordered_map>

namespace troupe {

namespace {

constexpr auto state_field = "agentState";
constexpr auto count_field = "takesBack";
constexpr auto run_field = "rewindBeforeInvocationId";

// Field `name` of an object; null if it is absent.
const json* field_in(const json& object, const char* name) {
  if (!object.is_object())
    return nullptr;
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

void set_count(event& said, std::uint64_t count) {
  auto actions
    = said.actions.extra.is_null() ? json::object() : said.actions.extra.data();
  actions[state_field] = json{{count_field, count}};
  said.actions.extra = std::move(actions);
}

std::string run_of(const event& said) {
  const auto* run = field_in(said.actions.extra.data(), run_field);
  return run != nullptr && run->is_string() ? run->get<std::string>()
                                            : std::string();
}

} // namespace

std::optional<std::uint64_t> taken_back_by(const event& said) {
  if (said.actions.extra.is_null())
    return std::nullopt;
  const auto* state = field_in(said.actions.extra.data(), state_field);
  const auto* count
    = state == nullptr ? nullptr : field_in(*state, count_field);
  return count != nullptr && count->is_number_unsigned()
           ? count->get<std::uint64_t>()
           : std::optional<std::uint64_t>();
}

bool is_rewind(const event& said) {
  return !said.actions.extra.is_null()
         && (taken_back_by(said) || !run_of(said).empty());
}

void take_back(event& said,
               std::uint64_t count,
               const std::string& before_run) {
  set_count(said, count);
  if (before_run.empty())
    return;
  auto actions = said.actions.extra.data();
  actions[run_field] = before_run;
  said.actions.extra = std::move(actions);
}

json to_adk_json(const event& said) {
  auto wire = to_json(said);
  if (taken_back_by(said) && !run_of(said).empty()) {
    auto& actions = wire["actions"];
    auto& state = actions[state_field];
    state.erase(count_field);
    if (state.empty())
      actions.erase(state_field);
  }
  return wire;
}

result<void> number_rewinds(std::vector<event>& log) {
  // By invocation id, the number of events before its first one.
  std::unordered_map<std::string_view, std::uint64_t> begins;
  std::uint64_t before = 0;
  for (auto& said : log) {
    if (const auto count = taken_back_by(said)) {
      if (*count > before)
        return error(errc::invalid_argument,
                     fmt::format("event {} takes back {} events, but only {} "
                                 "are before it",
                                 before + 1,
                                 *count,
                                 before));
    } else if (const auto run = run_of(said); !run.empty()) {
      const auto begin = begins.find(run);
      set_count(said, begin == begins.end() ? 0 : before - begin->second);
    }
    begins.try_emplace(said.invocation_id, before);
    ++before;
  }
  return {};
}

} // namespace troupe
