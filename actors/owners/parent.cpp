#include "troupe/actors/owners/parent.hpp"

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
  // Before the letters that came since. An owner that is stale already keeps
  // them for its next load.
  if (!is_waiting())
    decide_again();
}

void parent_actor::release() {
  children_.clear();
}

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
