// The internals of a runtime: the actor system, the data that its actors share,
// and the apps. Not part of the public API.

#pragma once

#include "troupe/actors/reader_control.hpp"
#include "troupe/actors/run_control.hpp"
#include "troupe/actors/setup.hpp"
#include "troupe/stores/store.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace troupe::detail {

/// Thread-safe except for destruction.
class session_backend {
public:
  /// Owns its actor system, with a scheduler of `threads` workers.
  session_backend(std::shared_ptr<troupe::environment> environment,
                  actors::setup_options options,
                  std::size_t threads);

  /// Runs on the caller's actor system, which outlives this object.
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

  /// Registers a run, so that `shut_down` can cancel it and wait for it.
  /// Returns false once the runtime is closing: the run must not start.
  bool enter_run(const std::shared_ptr<run_control>& run);

  /// Returns true if a run of this invocation id has not ended here.
  bool has_run(const std::string& invocation_id) const;

  /// Registers a follower, so that `shut_down` can end it. Returns false once
  /// the runtime is closing.
  bool enter_follower(const std::shared_ptr<ending_reader>& follower);

  /// Sets the store that keeps the state. Call before the first actor is made.
  void use_store(std::shared_ptr<store> kept);

  /// Cancels the runs, waits for all calls, ends the actors and closes the
  /// store. Blocks. Fails with the error of closing the store or a plugin.
  /// Later calls return the result of the first.
  result<void> shut_down();

private:
  void await(actors::load_gate& gate);

  std::unique_ptr<caf::actor_system_config> config_;
  std::unique_ptr<caf::actor_system> own_system_;
  std::shared_ptr<actors::setup> shared_;
  mutable std::mutex mutex_;
  std::vector<std::weak_ptr<run_control>> runs_;
  std::size_t runs_swept_ = 64;
  std::vector<std::weak_ptr<ending_reader>> followers_;
  std::size_t followers_swept_ = 64;
  std::once_flag shut_;
  result<void> closed_;
};

/// Returns true if the calling thread runs actors or tasks of a runtime. A
/// blocking call there could wait for itself.
bool is_runtime_thread() noexcept;

} // namespace troupe::detail
