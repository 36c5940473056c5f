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
  auto& state = actions[state_field];
  if (!state.is_object())
    state = json::object();
  state[count_field] = count;
  said.actions.extra = std::move(actions);
}

// The number as it stands there, of any type; null if there is none.
const json* number_in(const event& said) {
  if (said.actions.extra.is_null())
    return nullptr;
  const auto* state = field_in(said.actions.extra.data(), state_field);
  return state == nullptr ? nullptr : field_in(*state, count_field);
}

error bad_number(std::uint64_t number, const std::string& why) {
  return {errc::invalid_argument, fmt::format("event {}: {}", number, why)};
}

std::string run_of(const event& said) {
  const auto* run = field_in(said.actions.extra.data(), run_field);
  return run != nullptr && run->is_string() ? run->get<std::string>()
                                            : std::string();
}

} // namespace

std::optional<std::uint64_t> taken_back_by(const event& said) {
  const auto* const count = number_in(said);
  // A number that was never text is signed.
  const bool is_count
    = count != nullptr && count->is_number_integer()
      && (count->is_number_unsigned() || count->get<std::int64_t>() >= 0);
  return is_count ? count->get<std::uint64_t>()
                  : std::optional<std::uint64_t>();
}

bool is_rewind(const event& said) {
  return !said.actions.extra.is_null()
         && (number_in(said) != nullptr || !run_of(said).empty());
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
  wire["actions"].erase("appliedOps");
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
    const auto count = taken_back_by(said);
    if (number_in(said) != nullptr && !count)
      return bad_number(before + 1,
                        "agentState.takesBack is not a number of events");
    if (count > before)
      return bad_number(
        before + 1,
        fmt::format("it takes back {} events, but only {} are before it",
                    *count,
                    before));
    if (const auto run = run_of(said); !run.empty()) {
      const auto begin = begins.find(run);
      const auto by_run = begin == begins.end() ? 0 : before - begin->second;
      if (count && *count != by_run)
        return bad_number(
          before + 1,
          fmt::format("it takes back {} events by its number, but {} by its "
                      "rewindBeforeInvocationId",
                      *count,
                      by_run));
      set_count(said, by_run);
    }
    begins.try_emplace(said.invocation_id, before);
    ++before;
  }
  return {};
}

} // namespace troupe
