#include "troupe/actors/running/restored_runs.hpp"

#include "troupe/actors/owners/store_queue.hpp"
#include "troupe/actors/running/lease.hpp"
#include "troupe/agents/turns/recovery.hpp"

#include <algorithm>
#include <utility>

namespace troupe::actors {

namespace {

constexpr std::size_t runs_page = 1'000;
constexpr std::uint64_t events_page = 1'000;

// Returns the number in the run's newest claim, which counts its recoveries; 0
// if there is none.
result<std::uint64_t> count_recoveries(store& kept, const open_run& listed) {
  const auto session
    = kept.load_session(listed.key, {.events_max = 0, .ids_max = 0});
  if (!session)
    return session.error();
  if (!*session)
    return 0;
  const auto first = (*session)->first_revision;
  for (auto last = (*session)->scope.revision; last > first;) {
    const auto from = last - std::min(last - first, events_page) + 1;
    const auto events = kept.load_events(listed.key, from, last);
    if (!events)
      return events.error();
    for (auto each = events->rbegin(); each != events->rend(); ++each)
      if ((*each)->invocation_id == listed.invocation_id && claims_run(**each))
        return number_of_claim(**each);
    last = from - 1;
  }
  return 0;
}

} // namespace

result<void> leave_restored_runs(store& kept, setup& shared) {
  run_query query;
  query.limit = runs_page;
  const auto listed = list_all_runs(kept, std::move(query));
  if (!listed)
    return listed.error();
  result<void> outcome;
  for (const auto& each : *listed) {
    // The queue checks this again before it writes.
    if (each.holder != shared.holder_id || shared.has_run(each.invocation_id))
      continue;
    const auto recoveries = count_recoveries(kept, each);
    if (recoveries)
      shared.store->leave_restored_run(
        each.key,
        each.invocation_id,
        each.agent,
        left_holder(shared.holder_id, *recoveries));
    else if (outcome)
      outcome = recoveries.error();
  }
  return outcome;
}

} // namespace troupe::actors
