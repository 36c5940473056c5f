// How a session keeps the order of a writer whose append fails.

#include "troupe/actors/session_actor.hpp"
#include "troupe/core/mechanism.hpp"

#include <utility>

namespace troupe::actors {

// Refuses the letter if an earlier append of its writer is refused. The refusal
// takes its place among the decided letters like any other.
bool session_actor::cut_off(std::unique_ptr<append>& next) {
  auto why = next->place.refusal();
  if (!why || is_broken(mechanism::write_order))
    return false;
  next->is_cut = true;
  next->refuse(*std::move(why));
  batch_.push_back(std::move(next));
  return true;
}

// A refusal that was computed from stale state is decided again, and so is one
// behind a refusal that was.
bool session_actor::is_decided_again(const struct commit& answered,
                                     const append& letter) {
  if (!is_refused(letter))
    return false;
  return answered.refuses_again || (letter.is_cut && !letter.place.refusal());
}

} // namespace troupe::actors
