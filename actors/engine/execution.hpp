// Where the actors of one runtime run, and how many of them there are.

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
  /// Threads that do not belong to the system and are about to schedule a job
  /// there, or just have.
  load_gate senders;

protected:
  ~execution() = default;
};

/// Enters `job` (one reference to it) into the scheduler, from any thread, and
/// keeps the actor system until that is done.
void schedule(execution& on, caf::resumable* job);

/// The same for the activation of an owner, which a lent thread runs itself.
void schedule_brief(execution& on, caf::resumable* job);

} // namespace troupe::actors
