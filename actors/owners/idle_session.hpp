// What is left of a session that has no actor: its state and its log, without a
// store. Its user keeps it until a letter needs an actor again.

#pragma once

#include "troupe/actors/owners/children.hpp"
#include "troupe/actors/owners/list_index.hpp"
#include "troupe/actors/parts/event_window.hpp"
#include "troupe/actors/parts/recent_ids.hpp"
#include "troupe/core/event.hpp"
#include "troupe/core/state_map.hpp"

#include <memory>

namespace troupe::actors {

struct idle_session final : idle_child {
  state_map keys;
  event_window events;
  recent_ids ids;
  timestamp last_update_time{};
  std::unique_ptr<listing> listed; // Never null.
};

} // namespace troupe::actors
