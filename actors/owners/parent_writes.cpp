// Writes to the state of an app or a user that no session takes part in.
//
// Invariant: a write is decided where a climb of the same moment would be: all
// earlier climbs are installed and in the store's queue, and no later one is
// judged. Over a store it is answered when it is durable. A write that is based
// on a stale owner is decided again after the next load, before later letters.

#include "troupe/actors/owners/parent.hpp"
#include "troupe/actors/owners/store_queue.hpp"

#include <fmt/format.h>

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::actors {

namespace {

scope where_of(const write_state& wanted) noexcept {
  return wanted.user ? scope::user : scope::app;
}

error changed_retry(const write_state& wanted) {
  return {
    errc::conflict,
    fmt::format("the write '{}' came before with other operations", wanted.id)};
}

delta erasing(const state_map& keys, scope where) {
  delta changes;
  keys.for_each([&](std::string_view name, const value&) {
    // A delta cannot hold a reserved name.
    if (const auto key = join_key(where, name); check_key(key))
      changes.record(key, operation_kind::erase).value();
  });
  return changes;
}

} // namespace

void parent_actor::decide(std::unique_ptr<write_state> wanted) {
  const auto where = where_of(*wanted);
  // Computed at each decision: the keys may differ when the write is decided
  // again.
  if (wanted->clears)
    wanted->changes = erasing(state_.keys(), where);
  const auto before = state_.revision();
  wanted->outcome = judge(*wanted);
  const bool is_new = state_.revision() != before;
  std::vector<resolution> remembered;
  if (is_new && wanted->clears)
    remembered = recent_writes_.forget_all(where);
  else if (is_new && !wanted->id.empty())
    remembered.push_back(recent_writes_.add(
      {wanted->id, wanted->operations, *wanted->outcome}, where));
  if (live()) {
    std::optional<store_change> change;
    if (is_new)
      change = change_of(*wanted, std::move(remembered));
    return store_write(std::move(wanted), std::move(change));
  }
  if (is_new && shared().on_commit)
    shared().on_commit(1);
  answer(std::move(wanted));
}

result<shared_write> parent_actor::judge(const write_state& wanted) {
  // The id is compared before the revision: a retry still names the revision
  // from before its first attempt.
  if (const auto* const earlier
      = wanted.id.empty() ? nullptr : recent_writes_.find(wanted.id)) {
    if (earlier->operations != wanted.operations)
      return changed_retry(wanted);
    return earlier->answer;
  }
  if (wanted.expected_revision
      && *wanted.expected_revision != state_.revision())
    return error(errc::conflict,
                 fmt::format("the state is at revision {}, not {}",
                             state_.revision(),
                             *wanted.expected_revision));
  const auto share = wanted.changes.share(where_of(wanted));
  if (share.empty() && recent_writes_.empty())
    return shared_write{state_.revision(), {}}; // Nothing to clear.
  std::vector<resolution> resolved;
  if (auto judged
      = state_.judge(share, resolved, false, shared().options.limits);
      !judged)
    return judged.error();
  state_.install();
  if (wanted.clears)
    return shared_write{state_.revision(), {}};
  const auto* const written = state_.keys().find(share.back().name);
  return shared_write{state_.revision(), written ? *written : value()};
}

store_change parent_actor::change_of(const write_state& decided,
                                     std::vector<resolution> remembered) const {
  const auto where = where_of(decided);
  std::vector<resolution> outcomes;
  for (const auto& each : decided.changes.share(where)) {
    const auto* const written = state_.keys().find(each.name);
    outcomes.push_back({where, each.name, written ? *written : value()});
  }
  for (auto& each : remembered)
    outcomes.push_back(std::move(each));
  event said;
  said.author = "system";
  said.timestamp = decided.time;
  said.actions.state_delta.resolve(outcomes);
  store_change change;
  change.kind = change_kind::write;
  change.owner = live()->name;
  change.event = std::make_shared<const event>(std::move(said));
  (where == scope::user ? change.user_revision : change.app_revision)
    = decided.outcome->revision;
  return change;
}

live_owners parent_actor::as_owners() const {
  return live()->name.where() == scope::user
           ? live_owners{nullptr, live(), nullptr}
           : live_owners{nullptr, nullptr, live()};
}

// A refusal, and the answer to a retry, are confirmed by the queue: both may be
// based on a stale owner.
void parent_actor::store_write(std::unique_ptr<write_state> decided,
                               std::optional<store_change> change) {
  auto durable = std::make_unique<struct commit>();
  durable->from = live();
  durable->owners = as_owners();
  durable->refuses = !change;
  if (change)
    durable->changes.push_back(*std::move(change));
  durable->letters.push_back(std::move(decided));
  durable->filled = true;
  ++writes_under_way_;
  shared().store->push(std::move(durable));
}

void parent_actor::settle_writes(struct commit& answered) {
  using verdict = actors::commit::verdict;
  --writes_under_way_;
  while (!answered.letters.empty()) {
    auto decided = take_as<write_state>(answered.letters.pop_front());
    if (answered.outcome == verdict::again || answered.refuses_again) {
      writes_again_.push_back(std::move(decided));
      continue;
    }
    if (answered.outcome == verdict::failed)
      decided->refuse(answered.why);
    answer(std::move(decided));
  }
}

void parent_actor::decide_again() {
  for (auto again = std::exchange(writes_again_, letter_list());
       !again.empty();)
    decide(take_as<write_state>(again.pop_front()));
}

void parent_actor::refuse_waiting(const error& why) {
  for (auto again = std::exchange(writes_again_, letter_list());
       !again.empty();)
    refuse(again.pop_front(), why);
  // Nothing else would load the owner for the readers that wait.
  for (auto waiting = take_readers(); !waiting.empty();)
    refuse(waiting.pop_front(), why);
}

} // namespace troupe::actors
