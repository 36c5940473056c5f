// The memory service of a runtime with its threads, as running code uses them.

#pragma once

#include "troupe/contexts/lanes/store_call.hpp"
#include "troupe/core/event.hpp"
#include "troupe/core/key.hpp"
#include "troupe/stores/memory_service.hpp"

#include <cstddef>
#include <functional>
#include <variant>
#include <vector>

namespace troupe {

/// Memories to add for a session: all of the session, some of its events, or
/// texts that are from no session.
struct memory_addition {
  struct whole_session {};

  std::variant<whole_session, std::vector<event_ptr>, std::vector<memory_entry>>
    added;
};

/// The memory service of a runtime, and its threads that may block.
struct memory_access : store_access<memory_service> {
  /// Adds memories for a session, and takes them back if the session is gone
  /// when they were added (runtime/session_memory.cpp). The answer is the
  /// number of new memories. Fails once the runtime has ended.
  std::function<result<pending<std::size_t>>(const session_key& key,
                                             memory_addition wanted)>
    add;
};

/// `errc::invalid_argument`: the runtime has no memory service.
inline error without_memory() {
  return {errc::invalid_argument,
          "the runtime has no memory service; set runtime_options::memory, or "
          "the option --memory of troupe"};
}

} // namespace troupe
