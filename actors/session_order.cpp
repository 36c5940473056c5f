// How a session keeps the order of a writer whose append fails.

#include "troupe/actors/session_actor.hpp"
#include "troupe/core/mechanism.hpp"

#include <utility>

namespace troupe::actors {

// Refuses the letter if an earlier append of its writer is refused. The refusal
// takes its place among the decided letters like any other. When the earlier
// one is decided again, because it was refused on stale state, this session is
// stale too, so all behind it are decided again.
bool session_actor::cut_off(std::unique_ptr<append>& next) {
  auto why = next->place.refusal();
  if (!why || is_broken(mechanism::write_order))
    return false;
  next->refuse(*std::move(why));
  batch_.push_back(std::move(next));
  return true;
}

} // namespace troupe::actors
