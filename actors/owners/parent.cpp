#include "troupe/actors/owners/parent.hpp"

#include "troupe/actors/owners/store_queue.hpp"

#include <utility>

namespace troupe::actors {

void parent_actor::receive(std::unique_ptr<shut_down>) {
  children_.shut_down();
  quit();
}

void parent_actor::refuse(letter_ptr received, const error& why) {
  // The end of a run must arrive, and needs no state.
  if (is_one_of<end_run>(*received))
    handle(std::move(received));
  else
    received->fail(why);
}

void parent_actor::install(load& loaded) {
  auto& found = *loaded.scope;
  recent_writes_
    = found ? recent_writes::take_from(found->keys) : recent_writes();
  state_ = found ? scope_state(std::move(found->keys), found->revision)
                 : scope_state();
  if (readers_)
    readers_->note_load();
  // Before the letters that came since. An owner that is stale already keeps
  // them for its next load.
  if (!is_waiting())
    decide_again();
}

void parent_actor::release() {
  children_.clear();
  for (auto waiting = take_readers(); !waiting.empty();)
    waiting.pop_front()->fail(closed_reason());
}

// -- readers that follow the state --------------------------------------------

// Over a store, the answer waits until the shown state is durable. If it turns
// out to be stale, the letter enters at the app again.
void parent_actor::receive(std::unique_ptr<follow_state> wanted) {
  if (!readers_)
    readers_ = std::make_unique<state_followers>();
  const auto losses = live() ? shared().store->losses() : 0;
  const shown_state now{state_.keys(),
                        state_.revision(),
                        shared().removals.of(wanted->owner),
                        losses};
  auto answered = readers_->serve(std::move(wanted), now);
  if (!answered)
    return;
  answered->count_in(shared().calls);
  confirm(std::move(answered),
          live() ? as_owners() : live_owners(),
          {0, generation(), generation()},
          top());
}

void parent_actor::answer_readers() {
  if (!readers_ || is_waiting() || !readers_->may_answer(state_.revision()))
    return;
  for (auto waiting = readers_->take_all(); !waiting.empty();)
    receive(take_as<follow_state>(waiting.pop_front()));
}

letter_list parent_actor::take_readers() {
  return readers_ ? readers_->take_all() : letter_list();
}

// -- children -----------------------------------------------------------------

children::child* parent_actor::find_child(const std::string& name) {
  if (live())
    return &open_child(name);
  auto* const known = children_.find(name);
  return known != nullptr && known->idle() ? &open_child(name) : known;
}

children::child& parent_actor::open_child(const std::string& name) {
  return children_.open(name, [&](std::unique_ptr<idle_child> idle) {
    return spawn_child(name, std::move(idle));
  });
}

letter_list parent_actor::settle(const std::string& child, bool gone) {
  return gone ? children_.forget(child) : children_.resume(child);
}

void parent_actor::unpark(letter_list parked) {
  while (!parked.empty()) {
    auto next = parked.pop_front();
    renew(*next);
    owner_actor::deliver(std::move(next));
  }
  child_settled();
}

void parent_actor::settle_leaving(retire& wished) {
  if (wished.at == retire::step::asked)
    return children_.answer_leaving(wished.child);
  auto parked = wished.idle
                  ? children_.keep_idle(wished.child, std::move(wished.idle))
                  : settle(wished.child, wished.at == retire::step::gone);
  // Letters that the child left came before the parked ones.
  while (!wished.left.empty())
    hand_on(wished.left.pop_front(), wished.child);
  unpark(std::move(parked));
}

} // namespace troupe::actors
