// Checks answers to rewinds, and which events they leave: those that a walk
// back over the log leaves. The model makes the changes of rewinds itself.

#include "troupe/core/rewind.hpp"

#include "verdict.hpp"

#include <algorithm>

namespace troupe::testing {

namespace {

// The revision before the first event of the run that the call names, or the
// one that it names itself.
std::optional<std::uint64_t> target_of(const call_record& call,
                                       const std::vector<event_ptr>& log) {
  if (call.rewind.to)
    return call.rewind.to;
  const auto first
    = std::ranges::find(log, call.rewind.run, &event::invocation_id);
  return first == log.end() ? std::nullopt
                            : std::optional<std::uint64_t>(first - log.begin());
}

bool is_live(const std::vector<event_ptr>& log, std::size_t index) {
  const auto live = live_events(log);
  return std::ranges::find(live, log[index]) != live.end();
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

void verdict::judge_rewind(const call_record& call) {
  if (!is_stored(call.key, *call.stored, call.after))
    return find("answered before it was stored: " + name(call));
  const auto& rewound = *call.rewound;
  const auto count = taken_back_by(*call.stored);
  const auto& found = events_.at({call.key, call.stored->id}).back();
  const auto log = at_[found.place + 1].get(call.key).value().events;
  if (!count || rewound.to != target_of(call, log)
      || rewound.revision - 1 - *count != rewound.to
      || rewound.revision != found.number)
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
  const auto held = at_[moment].get(call.key);
  const auto to = held ? target_of(call, held->events) : std::nullopt;
  if (!to)
    return call.code == "not_found";
  const auto from = call.rewind.expected.value_or(held->revision);
  if (call.code == "not_found")
    return *to > from || was_lost(call.before, call.after);
  if (call.code == "invalid_argument")
    return *to == from;
  if (call.code != "conflict")
    return false;
  const bool is_taken_back
    = !call.rewind.to && *to < from && !is_live(held->events, *to);
  return held->revision != from || is_taken_back || was_lost(0, call.after)
         || was_removed(call.key, call.before, call.after)
         || std::ranges::any_of(told_.runs, [&](const run_record& run) {
              return run.key == call.key && run.before <= call.after
                     && (run.ends == 0 || run.after >= call.before);
            });
}

} // namespace troupe::testing
