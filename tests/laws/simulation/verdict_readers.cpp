// Checks the readers that follow sessions: every event once, in order, and
// without a gap, and each end for a reason.

#include "verdict.hpp"

#include <algorithm>
#include <string>

namespace troupe::testing {

namespace {

std::string shown(const follow_record& reader) {
  return "reader of " + to_string(reader.key) + " from "
         + (reader.how.from ? std::to_string(*reader.how.from) : "the end")
         + " (" + std::to_string(reader.before) + " to "
         + std::to_string(reader.after) + ", " + reader.code + ": "
         + reader.reason + ")";
}

} // namespace

void verdict::judge(const follow_record& reader) {
  if (reader.ends > 1)
    find("ended " + std::to_string(reader.ends) + " times: " + shown(reader));
  const auto last = judge_taken(reader);
  if (reader.was_dead)
    return;
  if (reader.ends == 1 && !is_reason(reader, last))
    find("ended for no reason: " + shown(reader));
  if (reader.is_waiting_at_end)
    judge_end(reader, last);
}

// Returns the last event. An event is right if it was stored, by then, directly
// after the one that was handed out before it, in the same session.
const verdict::stored_event* verdict::judge_taken(const follow_record& reader) {
  const stored_event* last = nullptr;
  for (std::size_t index = 0; index < reader.taken.size(); ++index) {
    const auto& said = *reader.taken[index];
    const auto found = events_.find({reader.key, said.id});
    const stored_event* next = nullptr;
    if (found != events_.end())
      for (const auto& each : found->second)
        if (each.place < reader.taken_at[index] && *each.event == said
            && (last != nullptr
                  ? follows(reader, *last, each)
                  : is_first(reader, each, reader.taken_at[index])))
          next = &each;
    if (next == nullptr) {
      find("handed out " + said.id + " after "
           + (last == nullptr ? "none" : last->event->id)
           + " although it is not the next event: " + shown(reader));
      return nullptr;
    }
    last = next;
  }
  return last;
}

bool verdict::follows(const follow_record& reader,
                      const stored_event& last,
                      const stored_event& next) const {
  if (births_[last.place + 1].at(reader.key)
        != births_[next.place + 1].at(reader.key)
      || last.number + 1 != next.number)
    return false;
  const auto held = at_[next.place + 1].get(reader.key);
  return held->events[last.number - 1]->id == last.event->id;
}

// Returns true if the append of the event, or the fork that has it from its
// parent, was answered before the reader began. An answer before it was stored
// is one for an earlier session of that name, or a lost event.
bool verdict::was_acknowledged_before(const follow_record& reader,
                                      const stored_event& next) const {
  const auto is_earlier = [&reader, &next](const call_record& call) {
    return call.code == "ok" && call.target() == reader.key
           && call.answered_at <= reader.answered_before
           && call.after > next.place;
  };
  if (next.is_shared)
    return std::ranges::any_of(told_.calls, [&](const call_record& call) {
      return call.kind == call_kind::fork && is_earlier(call);
    });
  const auto [first, last] = calls_by_id_.equal_range(next.event->id);
  return std::any_of(
    first, last, [&](const auto& each) { return is_earlier(*each.second); });
}

// A reader from the end gets no event that was acknowledged before its call,
// and all that its client appended afterwards.
bool verdict::is_first(const follow_record& reader,
                       const stored_event& next,
                       std::size_t taken_at) const {
  if (reader.how.from)
    return next.number == *reader.how.from + 1;
  if (next.place < reader.before && was_acknowledged_before(reader, next))
    return false;
  for (auto index = reader.calls_before; index < told_.calls.size(); ++index) {
    const auto& call = told_.calls[index];
    if (call.kind != call_kind::append || call.burst != reader.burst
        || call.key != reader.key || call.code != "ok" || call.was_dead
        || calls_by_id_.count(call.event.id) != 1)
      continue;
    for (const auto& own : events_.at({call.key, call.event.id}))
      if (own.place < next.place && own.place < taken_at
          && births_[own.place + 1].at(reader.key)
               == births_[next.place + 1].at(reader.key)
          && !was_lost(own.place, taken_at))
        return false;
  }
  return true;
}

// A reader may begin with what its program still has in memory of a session
// that another program has removed, or that the store has lost.
bool verdict::is_reason(const follow_record& reader,
                        const stored_event* last) const {
  if (reader.code == "ok")
    return reader.is_closed || reader.was_closing;
  if (reader.code == "cancelled")
    return reader.was_closing;
  const auto since
    = last != nullptr ? std::min(reader.before, last->place) : reader.before;
  if (reader.code == "store_failed")
    return reader.faults_after > reader.faults_before
           || was_lost(since, reader.after);
  if (reader.code == "conflict")
    return was_lost(since, reader.after);
  if (reader.code != "not_found")
    return false;
  if (was_lost(since, reader.after)
      || is_being_removed(reader.key, since, reader.after))
    return true;
  if (!reader.taken.empty())
    return false;
  for (auto moment = reader.before; moment <= reader.after; ++moment)
    if (is_beyond(reader, moment))
      return true;
  return false;
}

// Returns true if there is no session, or the event before the reader's place
// was not acknowledged when the reader began.
bool verdict::is_beyond(const follow_record& reader, std::size_t moment) const {
  const auto held = at_[moment].get(reader.key);
  const auto from = reader.how.from.value_or(0);
  if (!held || held->revision < from)
    return true;
  if (from == 0)
    return false;
  const auto found = events_.find({reader.key, held->events[from - 1]->id});
  return found != events_.end()
         && std::ranges::none_of(found->second, [&](const auto& each) {
              return was_acknowledged_before(reader, each);
            });
}

// The reader waits for the event after the newest one of a session that exists.
void verdict::judge_end(const follow_record& reader, const stored_event* last) {
  const auto held = at_.back().get(reader.key, {.num_recent_events = 0});
  if (!held)
    return find("waits for a session that does not exist: " + shown(reader));
  if (reader.revision_at_end != held->revision)
    find("was not handed out all events: " + shown(reader) + ", "
         + std::to_string(reader.revision_at_end.value_or(0)) + " of "
         + std::to_string(held->revision));
  if (last != nullptr
      && births_[last->place + 1].at(reader.key)
           != births_.back().at(reader.key))
    find("waits for another session of the same key: " + shown(reader));
}

} // namespace troupe::testing
