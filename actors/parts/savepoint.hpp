// A session's memory before one of its commits. If the commit is decided again
// because its user or app has moved, the session goes back to it in place of a
// load.

#pragma once

#include "troupe/core/event.hpp"
#include "troupe/core/state_map.hpp"

#include <cstdint>

namespace troupe::actors {

struct savepoint {
  state_map keys;
  timestamp last_update_time;
  std::uint64_t revision = 0;
  /// Number `revision`; null if that is 0.
  event_ptr newest;
};

} // namespace troupe::actors
