// Spawns actors from any thread.
//
// CAF stores its logger in every thread that spawns, and `~actor_system` waits
// until each of these threads has released it. A caller's thread may live on,
// so without `logger_guard` the wait would never end.

#pragma once

#include "troupe/actors/engine/ref.hpp"

#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/logger.hpp>

#include <utility>

namespace troupe::actors {

/// Removes the logger of `system` from this thread, unless the thread had it
/// before.
class logger_guard {
public:
  explicit logger_guard(caf::actor_system& system) noexcept
    : keeps_(caf::logger::current_logger() == &system.logger()) {}

  ~logger_guard() {
    if (!keeps_)
      caf::logger::set_current_actor_system(nullptr);
  }

  logger_guard(const logger_guard&) = delete;
  logger_guard& operator=(const logger_guard&) = delete;

private:
  const bool keeps_;
};

template <class Actor, class... Arguments>
ref<Actor> spawn_actor(caf::actor_system& system, Arguments&&... arguments) {
  const logger_guard guard(system);
  return ref<Actor>(
    caf::actor_cast<caf::strong_actor_ptr>(system.spawn<Actor, caf::lazy_init>(
      std::forward<Arguments>(arguments)...)));
}

} // namespace troupe::actors
