// Tells the holder of a run, and the operator, about updates that the run has
// overwritten unseen.

#pragma once

#include "troupe/actors/running/shared.hpp"
#include "troupe/contexts/lanes/basis_check.hpp"
#include "troupe/core/event.hpp"

namespace troupe::actors {

/// Counts the losses of an event that has taken effect. The first one of each
/// key is a warning. For `temp:` keys without an event, `said` has an author
/// alone.
void tell_losses(const run_shared& run,
                 const basis_check& noted,
                 const event& said);

} // namespace troupe::actors
