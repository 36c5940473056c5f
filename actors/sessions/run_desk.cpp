#include "troupe/actors/sessions/run_desk.hpp"

#include "troupe/agents/turns/recovery.hpp"

#include <algorithm>

namespace troupe::actors {

run_desk::active_run* run_desk::find(caf::actor_id run) {
  const auto found = std::ranges::find(active_, run, &active_run::id);
  return found == active_.end() ? nullptr : &*found;
}

bool run_desk::has_active(const std::string& run_id, caf::actor_id but) const {
  return std::ranges::any_of(active_, [&](const active_run& each) {
    return each.run_id == run_id && each.id != but;
  });
}

void run_desk::note_claims(const event_slice& events) {
  for (auto index = events.size(); index > 0; --index) {
    const auto& said = *events[index - 1];
    if (!claims_run(said))
      continue;
    const auto number = events.number(index - 1);
    for (auto& each : active_)
      each.is_taken_over
        = each.is_taken_over
          || (each.run_id == said.invocation_id && number > each.message);
  }
}

void run_desk::start(active_run granted) {
  if (auto* const known = find(granted.id))
    *known = std::move(granted);
  else
    active_.push_back(std::move(granted));
}

void run_desk::queue(std::unique_ptr<start_run> next) {
  kept_for_waiting_.add(*next);
  waiting_.push_back(std::move(next));
}

bool run_desk::end(caf::actor_id run) {
  return std::erase_if(active_,
                       [run](const active_run& each) { return each.id == run; })
         > 0;
}

std::unique_ptr<start_run> run_desk::take_next() {
  if (!active_.empty() || waiting_.empty())
    return nullptr;
  auto next = take_as<start_run>(waiting_.pop_front());
  kept_for_waiting_.remove(*next);
  return next;
}

letter_list run_desk::take_waiting() {
  kept_for_waiting_ = {};
  return std::exchange(waiting_, letter_list());
}

void run_desk::refuse(caf::actor_id run, const error& why) {
  refuse_start(waiting_, run, why, [this](const start_run& refused) {
    kept_for_waiting_.remove(refused);
  });
}

std::uint64_t run_desk::oldest_read(std::uint64_t revision,
                                    const event_slice& live) const {
  auto oldest = kept_for_waiting_.first_read(revision, live);
  for (const auto& each : active_)
    oldest = std::min(oldest, each.first_read);
  return oldest;
}

std::uint64_t run_desk::newest_max() const {
  // A waiting run may start before a load ends.
  auto newest = kept_for_waiting_.newest_max();
  for (const auto& each : active_)
    newest = std::max(newest, each.newest_max);
  return newest;
}

void run_desk::reload(std::uint64_t revision, const event_slice& live) {
  const history_start now{.message = revision + 1};
  for (auto& each : active_)
    each.first_read
      = std::min(each.first_read,
                 now.first_read(history_extent::newest(each.newest_max), live));
}

} // namespace troupe::actors
