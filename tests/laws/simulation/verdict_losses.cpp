// Checks the lost updates that runs are told, and those that are refused.

#include "verdict.hpp"

#include <algorithm>
#include <utility>

namespace troupe::testing {

namespace {

bool has_changed(const based_write& write, const json& state) {
  return state.value(write.key, json()) != write.seen;
}

// The newest event that has changed a key of the session, or empty.
std::string newest_change(const session_view& held, const std::string& key) {
  const auto [where, name] = split_key(key);
  for (auto next = held.events.rbegin(); next != held.events.rend(); ++next)
    if ((*next)->actions.state_delta.find_last(where, name) != nullptr)
      return (*next)->id;
  return {};
}

} // namespace

// `model` is the one before the change. An event may be stored a second time,
// when the place has lost it; the last time counts.
void verdict::note_losses(const store_change& change,
                          const session_model& model) {
  const auto found = told_.overwriting.find(change.event->text());
  if (found == told_.overwriting.end())
    return;
  const auto held = model.get(key_of(change.owner));
  auto& lost = lost_[found->second.invocation_id];
  std::erase_if(lost, [&change](const lost_update& each) {
    return each.event_id == change.event->id;
  });
  if (!held)
    return;
  for (const auto& each : found->second.writes)
    if (has_changed(each, held->state)) {
      lost.push_back({each.key,
                      change.event->author,
                      change.event->id,
                      split_key(each.key).where == scope::session
                        ? newest_change(*held, each.key)
                        : std::string()});
      if (found->second.came_to == based_event::end::kept)
        kept_losses_.emplace(change.event->id, each.key);
    }
}

void verdict::judge_refused_writes() {
  for (const auto& [token, made] : told_.overwriting) {
    if (made.came_to != based_event::end::refused)
      continue;
    const auto run = std::ranges::find(
      told_.runs, made.invocation_id, &run_record::invocation_id);
    if (was_lost(0, made.after))
      continue;
    bool has_reason = false;
    for (auto moment = made.before; moment <= made.after; ++moment) {
      const auto held = at_[moment].get(run->key, {.num_recent_events = 0});
      has_reason = has_reason || !held
                   || std::ranges::any_of(made.writes, [&](const auto& each) {
                        return has_changed(each, held->state);
                      });
    }
    if (plan_.lost_updates != lost_updates::refuse || !has_reason)
      find("a plain write was refused for no reason: " + token + " of run "
           + made.invocation_id);
  }
}

// The run tells the first loss of each key, and the number of all.
void verdict::judge_losses(const run_record& run) {
  const auto name = ", run " + run.invocation_id;
  const auto known = lost_.find(run.invocation_id);
  const auto lost
    = known == lost_.end() ? std::vector<lost_update>() : known->second;
  if (plan_.lost_updates == lost_updates::refuse && !lost.empty())
    find("a lost update was stored: " + lost.front().key + " in event "
         + lost.front().event_id + name);
  if (plan_.lost_updates != lost_updates::tell) {
    if (run.lost_count != 0)
      find("a lost update was told against the options" + name);
    return;
  }
  for (const auto& told : run.lost)
    if (std::ranges::none_of(lost, [&told](const lost_update& each) {
          return each.key == told.key && each.agent == told.agent
                 && each.event_id == told.event_id
                 && (told.overwritten_id.empty()
                     || told.overwritten_id == each.overwritten_id);
        }))
      find("a lost update was told that did not happen: " + told.key
           + " in event " + told.event_id + name);
  std::size_t kept = 0;
  for (const auto& each : lost) {
    if (!kept_losses_.contains({each.event_id, each.key}))
      continue;
    ++kept;
    if (std::ranges::find(run.lost, each.key, &lost_update::key)
        == run.lost.end())
      find("a lost update was not told: " + each.key + " in event "
           + each.event_id + name);
  }
  if (run.lost_count < kept || run.lost_count > lost.size())
    find("another number of lost updates was told: "
         + std::to_string(run.lost_count) + ", expected " + std::to_string(kept)
         + " to " + std::to_string(lost.size()) + name);
}

} // namespace troupe::testing
