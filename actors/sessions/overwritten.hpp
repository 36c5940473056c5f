// Finds the events whose changes of session keys another event overwrites.

#pragma once

#include "troupe/actors/letters/state.hpp"
#include "troupe/actors/parts/event_window.hpp"
#include "troupe/contexts/lanes/basis_check.hpp"

#include <vector>

namespace troupe::actors {

/// Notes, for each loss of a session key, the id of the newest event that has
/// changed the key before the last one of `accepted`, which carries `by`. Looks
/// at the accepted events, then at `decided`.
void name_overwritten(basis_check& by,
                      const std::vector<append*>& accepted,
                      const event_window& decided);

} // namespace troupe::actors
