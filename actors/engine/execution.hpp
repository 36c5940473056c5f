// The actor system of one runtime, with counts of its actors and of the threads
// that schedule jobs there.

#pragma once

#include "troupe/actors/engine/load_gate.hpp"

#include <caf/fwd.hpp>

#include <memory>

namespace troupe::actors {

class job_loop;

/// Kept alive by every actor. Thread-safe.
struct execution : std::enable_shared_from_this<execution> {
  explicit execution(caf::actor_system& on);

  execution(const execution&) = delete;
  execution& operator=(const execution&) = delete;

  caf::actor_system& system;
  /// Runs every job of the system; null: threads do.
  job_loop* const loop;
  /// Actors that have not ended.
  load_gate actors;
  /// Counts threads outside of the system that use its scheduler at this
  /// moment.
  load_gate senders;

protected:
  ~execution() = default;
};

/// Passes `job`, with one reference to it, to the scheduler. Keeps the actor
/// system alive until that is done. Thread-safe.
void schedule(execution& on, caf::resumable* job);

/// The same for a job that can wait until there is no other.
void schedule_behind(execution& on, caf::resumable* job);

/// The same for a short activation of an owner. A lent thread takes it and runs
/// it itself.
void schedule_brief(execution& on, caf::resumable* job);

} // namespace troupe::actors
