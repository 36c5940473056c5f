// What stands behind a runtime: the actor system, what its actors share, and
// the apps. Never seen by users.

#pragma once

#include "troupe/actors/owner_actor.hpp"
#include "troupe/actors/run_control.hpp"
#include "troupe/actors/setup.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace troupe::detail {

/// Thread-safe but for its destruction.
class session_backend {
public:
  /// Owns its actor system, with a scheduler of `threads` workers.
  session_backend(std::shared_ptr<troupe::environment> environment,
                  actors::setup_options options,
                  std::size_t threads);

  /// Lives on the actor system of the caller, who keeps it alive.
  session_backend(caf::actor_system& system,
                  std::shared_ptr<troupe::environment> environment,
                  actors::setup_options options);
  ~session_backend();

  session_backend(const session_backend&) = delete;
  session_backend& operator=(const session_backend&) = delete;

  actors::setup& shared() const noexcept { return *shared_; }

  const std::shared_ptr<actors::setup>& share() const noexcept {
    return shared_;
  }

  bool is_closing() const noexcept { return shared_->closing.load(); }

  /// Keeps a run, so that shutting down can cancel and await it. False if it is
  /// too late to start one.
  bool enter_run(const std::shared_ptr<run_control>& run);

  /// Keeps state in `kept` from here on; before anything else is done.
  void use_store(std::shared_ptr<store> kept);

  /// How the store was closed, if it was.
  result<void> shut_down();

private:
  void await(actors::load_gate& gate);

  std::unique_ptr<caf::actor_system_config> config_;
  std::unique_ptr<caf::actor_system> own_system_;
  std::shared_ptr<actors::setup> shared_;
  mutable std::mutex mutex_;
  std::vector<std::weak_ptr<run_control>> runs_;
  std::size_t runs_swept_ = 64;
  std::once_flag shut_;
  result<void> closed_;
};

/// Whether blocking this thread could keep the runtime from answering.
bool is_runtime_thread() noexcept;

} // namespace troupe::detail
