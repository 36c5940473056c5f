#include "replay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

namespace troupe::testing {

namespace {

std::string readable(const json& data) {
  return data.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string name_of(const placed_event& placed) {
  return fmt::format("event '{}', number {} of {} (user {}, app {})",
                     placed.stored->id,
                     placed.session_revision,
                     to_string(placed.key),
                     placed.user_revision,
                     placed.app_revision);
}

// Compares the result of one event with the stored event; empty if they are
// equal.
std::string append(session_model& model, const placed_event& placed) {
  auto sent = placed.sent;
  // The runtime fills in these fields.
  if (sent.id.empty())
    sent.id = placed.stored->id;
  if (sent.invocation_id.empty())
    sent.invocation_id = placed.stored->invocation_id;
  if (sent.timestamp == timestamp())
    sent.timestamp = placed.stored->timestamp;
  const auto same = model.append(placed.key, std::move(sent), placed.how);
  const auto real = readable(without_records(*placed.stored));
  const auto modelled
    = same ? readable(without_records(**same)) : to_string(same.error());
  if (real == modelled)
    return {};
  return fmt::format("{}, sent as {}\n  stored:  {}\n  model:   {}",
                     name_of(placed),
                     readable(to_json(placed.sent)),
                     real,
                     modelled);
}

} // namespace

std::string replay(session_model& model, std::vector<placed_event> events) {
  // The next revision of each scope, by the name of the scope.
  std::map<std::string, std::uint64_t> made;
  // Events of a session wait, in their order, for earlier events of its user
  // and app from other sessions.
  std::map<session_key, std::deque<const placed_event*>> sessions;
  std::ranges::sort(events, {}, &placed_event::session_revision);
  for (const auto& each : events)
    sessions[each.key].push_back(&each);

  const auto scopes_of = [](const placed_event& each) {
    std::vector<std::pair<std::string, std::uint64_t>> all{
      {to_string(each.key), each.session_revision}};
    if (each.user_revision != 0)
      all.emplace_back(each.key.app + "/" + each.key.user, each.user_revision);
    if (each.app_revision != 0)
      all.emplace_back(each.key.app, each.app_revision);
    return all;
  };
  const auto is_next = [&](const placed_event& each) {
    return std::ranges::all_of(scopes_of(each), [&made](const auto& scope) {
      return made[scope.first] + 1 == scope.second;
    });
  };
  for (bool moved = true; std::exchange(moved, false);)
    for (auto& [key, waiting] : sessions)
      while (!waiting.empty() && is_next(*waiting.front())) {
        const auto& each = *waiting.front();
        if (auto difference = append(model, each); !difference.empty())
          return difference;
        for (const auto& [name, revision] : scopes_of(each))
          made[name] = revision;
        waiting.pop_front();
        moved = true;
      }

  // A revision is missing, comes twice, or the orders of two scopes contradict
  // each other.
  std::string stuck;
  for (const auto& [key, waiting] : sessions)
    if (!waiting.empty()) {
      stuck += "\n  " + name_of(*waiting.front());
      for (const auto& [name, revision] : scopes_of(*waiting.front()))
        stuck += fmt::format(", {} is at {}", name, made[name]);
    }
  return stuck.empty() ? stuck : "no order fits; next would be" + stuck;
}

} // namespace troupe::testing
