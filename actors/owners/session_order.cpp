// Order of a writer whose append fails; see write_order.hpp.

#include "troupe/actors/owners/session.hpp"

#include <utility>

namespace troupe::actors {

// Refuses the letter if an earlier append of its writer is refused. The refusal
// keeps its place among the decided letters. If the earlier refusal is decided
// again because of stale state, this session is stale too, and all letters
// after it are decided again.
bool session_actor::cut_off(std::unique_ptr<append>& next) {
  auto why = next->place.refusal();
  if (!why)
    return false;
  next->refuse(*std::move(why));
  batch_.push_back(std::move(next));
  return true;
}

} // namespace troupe::actors
