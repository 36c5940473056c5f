// Runs of this process that had ended, and are open again because the store has
// gone back to an earlier state.
//
// They would keep out the runs of other processes for as long as this process
// shows signs of life.

#pragma once

#include "troupe/actors/setup.hpp"
#include "troupe/stores/store.hpp"

namespace troupe::actors {

/// Leaves the open runs of this process that it does not execute, so that any
/// process may recover them. The next commits write that. Fails like
/// `store::list_runs`, or with the first failure of a load; the other runs are
/// left then. Blocks.
result<void> leave_restored_runs(store& kept, setup& shared);

} // namespace troupe::actors
