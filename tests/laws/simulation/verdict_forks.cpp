// Checks forks: each begins with the past of its parent, as the parent had it,
// and with one event that names the parent.

#include "verdict.hpp"

#include <algorithm>

namespace troupe::testing {

namespace {

json own_keys(const json& all) {
  auto own = json::object();
  for (const auto& [name, data] : all.items())
    if (split_key(name).where == scope::session)
      own[name] = data;
  return own;
}

json origin_in(const event& said) {
  return to_json(said)["actions"].value("agentState", json::object());
}

} // namespace

// The model has no incarnations. A parent that was another one would have other
// keys or times.
void verdict::replay_fork(const store_change& change, session_model& model) {
  const auto key = key_of(change.owner);
  const auto& [id, revision, incarnation] = *change.past;
  const session_key parent{key.app, key.user, id};
  const auto made = model.fork(parent, {.at = revision}, key.id);
  if (!made)
    return find("should not have been forked: " + to_string(key) + " from "
                + to_string(parent) + ", " + to_string(made.error()));
  const auto& carried = *change.event;
  const auto keys = carried.actions.state_delta.to_json();
  if (!(keys == own_keys(made->state))
      || carried.timestamp != made->last_update_time)
    find("forked with another state: " + to_string(key) + " from "
         + to_string(parent) + " at " + std::to_string(revision) + " has "
         + keys.dump() + ", expected " + own_keys(made->state).dump());
  std::uint64_t number = 0;
  for (const auto& each : made->events)
    events_[{key, each->id}].push_back(
      {at_.size() - 1, ++number, stored_as(parent, *each), true});
  check_origin(change);
}

// The event as it was stored. The model's own event has other operations.
event_ptr verdict::stored_as(const session_key& key,
                             const event& of_model) const {
  const auto shown = without_records(of_model);
  const auto& all = events_.at({key, of_model.id});
  const auto found = std::ranges::find_if(
    all.rbegin(), all.rend(), [&shown](const stored_event& each) {
      return without_records(*each.event) == shown;
    });
  return found == all.rend() ? all.back().event : found->event;
}

// The next change of the same commit appends the event that names the parent.
void verdict::check_origin(const store_change& creation) {
  const auto place = at_.size();
  const auto name = to_string(creation.owner);
  const auto* const next
    = place < told_.written.size() ? &told_.written[place] : nullptr;
  if (next == nullptr || next->kind != change_kind::append
      || next->owner != creation.owner || next->event->author != "system")
    return find("a fork does not name its parent: " + name);
  const auto told = origin_in(*next->event).value("forkedFrom", json::object());
  if (told.value("session", "") != creation.past->session
      || told.value("revision", json()) != creation.past->revision)
    find("a fork names another parent: " + name + ", " + told.dump());
  if (cause_of_fork(creation, *next->event) == nullptr)
    find("was forked without a call: " + name);
}

const call_record* verdict::cause_of_fork(const store_change& creation,
                                          const event& origin) const {
  const auto place = at_.size() - 1;
  const auto key = key_of(creation.owner);
  const bool keeps_calls = origin_in(origin).contains("keepsOpenCalls");
  const auto found
    = std::ranges::find_if(told_.calls, [&](const call_record& call) {
        const auto& at = call.fork.how.at;
        return call.kind == call_kind::fork && call.target() == key
               && call.key.id == creation.past->session && call.before <= place
               && (call.answers == 0 || call.after > place)
               && (!at || *at == creation.past->revision)
               && call.fork.how.keep_open_calls == keeps_calls
               && call.code != "already_exists";
      });
  return found == told_.calls.end() ? nullptr : &*found;
}

// The parent is asked first: when the id is found to be taken, the parent may
// be gone.
bool verdict::is_fork_refused(const call_record& call,
                              std::size_t moment) const {
  if (call.code == "already_exists")
    return at_[moment].get(call.target(), {.num_recent_events = 0}).has_value();
  auto model = at_[moment];
  const auto made = model.fork(call.key, call.fork.how, call.fork.id);
  return !made && to_string(made.error().code()) == call.code;
}

// Without a revision, the fork begins at one that was the newest during the
// call.
void verdict::judge_fork(const call_record& call) {
  for (auto place = call.before; place < call.after; ++place) {
    const auto& change = told_.written[place];
    if (change.kind != change_kind::create || !change.past
        || key_of(change.owner) != call.target()
        || change.past->session != call.key.id)
      continue;
    const auto revision = change.past->revision;
    const bool fits = call.fork.how.at
                        ? *call.fork.how.at == revision
                        : once(call, [&](std::size_t moment) {
                            const auto held = at_[moment].get(
                              call.key, {.num_recent_events = 0});
                            return held && held->revision == revision;
                          });
    if (fits)
      return check_cut(call, false);
  }
  find("answered before it was stored: " + name(call));
}

} // namespace troupe::testing
