// Checks rewinds: each restores the session's keys exactly, and leaves the
// events that a walk back over the log leaves.

#include "troupe/core/rewind.hpp"

#include "verdict.hpp"
#include <fmt/format.h>

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

} // namespace

std::vector<event_ptr> live_events(const std::vector<event_ptr>& log) {
  std::vector<event_ptr> left;
  for (auto index = log.size(); index > 0; --index)
    if (const auto count = taken_back_by(*log[index - 1]))
      index -= std::min<std::size_t>(*count, index - 1);
    else
      left.push_back(log[index - 1]);
  std::ranges::reverse(left);
  return left;
}

// The newest moment before `moment` at which the session was at `revision`.
// Changes that the place has lost are left out.
const session_model* verdict::at_revision(const session_key& key,
                                          std::uint64_t revision,
                                          std::size_t moment) const {
  for (;;) {
    const auto held = at_[moment].get(key, {.num_recent_events = 0});
    if (!held)
      return nullptr;
    if (held->revision == revision)
      return &at_[moment];
    if (moment == 0)
      return nullptr;
    const auto lost = told_.losses.find(moment - 1);
    moment = lost == told_.losses.end() ? moment - 1 : lost->second;
  }
}

// `after` is the model with the rewind, which is the change behind the newest
// moment.
void verdict::check_rewind(const store_change& change,
                           const session_model& after) {
  const auto count = taken_back_by(*change.event);
  if (!count)
    return;
  const auto key = key_of(change.owner);
  const auto before = *change.session_revision - 1;
  const auto now = after.get(key);
  if (!now || *count > before)
    return find("a rewind takes back too much: " + change.event->id + " in "
                + to_string(key));
  const auto* const then = at_revision(key, before - *count, at_.size() - 1);
  if (then == nullptr)
    return find("a rewind goes to a place that never was: " + change.event->id
                + " in " + to_string(key));
  const auto expected = own_keys(then->get(key).value().state);
  if (const auto found = own_keys(now->state); found != expected)
    find(fmt::format("a rewind restores other keys: {} in {} has {}, expected "
                     "{}",
                     change.event->id,
                     to_string(key),
                     found.dump(),
                     expected.dump()));
}

void verdict::judge_rewind(const call_record& call) {
  const auto found = events_.find({call.key, call.stored->id});
  if (found == events_.end()
      || std::ranges::none_of(found->second, [&](std::size_t place) {
           return place < call.after
                  && *told_.written[place].event == *call.stored;
         }))
    find("answered before it was stored: " + name(call));
  const auto taken_back = taken_back_by(*call.stored);
  if (!taken_back || call.rewound->to != *call.rewind.to
      || call.rewound->revision - 1 - *taken_back != *call.rewind.to)
    find("goes to another place than wanted: " + name(call));
}

bool verdict::was_rewound(const session_key& key,
                          std::size_t before,
                          std::size_t after) const {
  for (auto place = before; place < after; ++place)
    if (const auto& change = told_.written[place];
        !told_.losses.contains(place) && change.kind == change_kind::append
        && key_of(change.owner) == key && taken_back_by(*change.event))
      return true;
  return false;
}

// Returns true if a run, a change or the place itself is the reason.
bool verdict::is_rewind_refused(const call_record& call,
                                std::size_t moment) const {
  const auto held = at_[moment].get(call.key, {.num_recent_events = 0});
  if (!held)
    return call.code == "not_found";
  const auto from = call.rewind.expected.value_or(held->revision);
  if (call.code == "not_found")
    return *call.rewind.to > from || was_lost(call.before, call.after);
  if (call.code == "invalid_argument")
    return *call.rewind.to == from;
  if (call.code != "conflict")
    return false;
  return held->revision != from || was_lost(0, call.after)
         || was_removed(call.key, call.before, call.after)
         || std::ranges::any_of(told_.runs, [&](const run_record& run) {
              return run.key == call.key && run.before <= call.after
                     && (run.ends == 0 || run.after >= call.before);
            });
}

} // namespace troupe::testing
