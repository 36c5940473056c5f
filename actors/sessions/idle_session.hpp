// A session without an actor: its state and its log, in memory alone. Its user
// keeps it until a letter needs an actor.

#pragma once

#include "troupe/actors/messages.hpp"
#include "troupe/actors/parts/event_window.hpp"
#include "troupe/actors/parts/recent_ids.hpp"
#include "troupe/actors/sessions/earlier_states.hpp"
#include "troupe/actors/sessions/followers.hpp"
#include "troupe/actors/sessions/list_index.hpp"
#include "troupe/core/event.hpp"
#include "troupe/core/state_map.hpp"

#include <cstdint>
#include <memory>

namespace troupe::actors {

struct idle_session final : idle_child {
  state_map keys;
  event_window events;
  std::uint64_t trimmed_to = 0;
  recent_ids ids;
  std::uint64_t unread_ids = 0; // As in `session_actor`.
  earlier_states earlier;
  timestamp last_update_time{};
  std::unique_ptr<listing> listed; // Never null.
  // Null if the session was never followed; without letters otherwise.
  std::unique_ptr<followers> followed;
};

} // namespace troupe::actors
