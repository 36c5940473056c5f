// The past that a fork takes over from its parent session.
//
// The events themselves are shared: by the store, or by the two logs in memory.

#pragma once

#include "troupe/actors/sessions/earlier_states.hpp"
#include "troupe/core/event_log.hpp"
#include "troupe/core/state_map.hpp"
#include "troupe/stores/store.hpp"

namespace troupe::actors {

struct forked_past {
  /// The parent, and the revision at which the fork begins.
  shared_past from;
  /// Keys of the parent at that revision, without prefix.
  state_map keys;
  timestamp last_update_time{};
  /// The oldest revision that the parent keeps, and so the fork.
  std::uint64_t first_revision = 0;
  /// Over a store, `store_queue::losses` before the parent was read.
  std::uint64_t losses = 0;
  /// The events up to that revision, and the states that the parent has kept.
  /// Empty over a store, which has both.
  event_slice events;
  earlier_states earlier;
};

} // namespace troupe::actors
