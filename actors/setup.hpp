// Data that all actors of a runtime share: limits, time, tool threads,
// directories, and counts of work under way.

#pragma once

#include "troupe/actors/engine/execution.hpp"
#include "troupe/actors/engine/tool_pool.hpp"
#include "troupe/actors/parts/append_wait.hpp"
#include "troupe/actors/parts/removal_counts.hpp"
#include "troupe/agents/compaction.hpp"
#include "troupe/agents/plugin.hpp"
#include "troupe/agents/turns/session_tokens.hpp"
#include "troupe/core/environment.hpp"
#include "troupe/core/json.hpp"

#include <caf/fwd.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe {
struct artifact_service;
struct memory_access;
} // namespace troupe

namespace troupe::actors {

struct setup_options {
  size_limits limits;
  std::size_t session_appends_max = 0;
  std::size_t session_bytes_max = 0;
  std::size_t runtime_appends_max = 0;
  std::size_t runtime_bytes_max = 0;
  std::chrono::nanoseconds append_wait_max{};
  std::size_t remembered_ids = 0;
  std::size_t tool_threads = 0;
  std::size_t runs_max = 0;
  std::size_t events_kept = 0;
  std::size_t live_sessions_max = 0;
  std::chrono::nanoseconds session_idle_max{};
  std::chrono::nanoseconds follow_period{};
  std::chrono::nanoseconds run_lease{};
};

class app_directory;
class retirement;
class session_directory;
class store_queue;

/// Data of one runtime. Every actor keeps it alive.
struct setup : execution {
  setup(caf::actor_system& on,
        std::shared_ptr<troupe::environment> time_and_ids,
        setup_options chosen);
  ~setup();

  std::shared_ptr<setup> share() {
    return std::static_pointer_cast<setup>(shared_from_this());
  }

  const std::shared_ptr<troupe::environment> environment;
  const setup_options options;
  /// Set before the first actor.
  std::vector<plugin> plugins;
  /// Null: runs make no summaries. Set before the first actor.
  std::shared_ptr<const compaction_options> compaction;
  /// Tokens of the sessions whose runs have a budget.
  token_counts tokens;
  /// Optional; called with the number of changes in each commit. Set before the
  /// first actor.
  std::function<void(std::size_t events)> on_commit;
  /// Receives warnings for an operator; never unset over a store. Set before
  /// the first actor.
  std::function<void(const std::string& warning)> on_warning;
  /// The queue to the store; null if state is kept in memory only. Set before
  /// the first actor, stopped after the last.
  std::unique_ptr<store_queue> store;
  /// Names this runtime as the holder of its open runs in the store
  /// (actors/running/holder_name.hpp). Empty if there is no store, or if it
  /// keeps no open runs. Set before the first actor.
  std::string holder_id;
  /// Returns true if this runtime executes the run. Set together with `store`;
  /// only the queue's threads call it.
  std::function<bool(const std::string& invocation_id)> has_run;
  /// Leaves the open runs in the store that this runtime does not execute
  /// (actors/running/restored_runs.hpp). Set and called as above.
  std::function<result<void>(troupe::store& kept)> leave_restored_runs;
  const std::unique_ptr<app_directory> apps;
  const std::unique_ptr<session_directory> directory;
  const std::unique_ptr<actors::retirement> retirement;
  /// Appends under way in all sessions.
  load_gate appends;
  /// Expected time that appends wait for the store.
  append_wait waits;
  /// Calls of the session service other than appends, from entry to answer.
  load_gate calls;
  /// Runs that have not ended.
  load_gate runs;
  /// Number of sessions without a store that were followed.
  std::atomic<std::uint64_t> incarnations{0};
  /// Removals of users whose state is followed.
  removal_counts removals;
  std::atomic<bool> closing{false};
  /// All actors have ended, and the actor system is about to end.
  std::atomic<bool> ended{false};

  tool_pool tools;
  /// Threads for calls that wait for the artifact store or the memory service.
  tool_pool files;
  /// Null: artifacts are off. Set before the first actor.
  std::shared_ptr<const artifact_service> artifacts;
  /// Null: memory is off. Set before the first actor.
  std::shared_ptr<const memory_access> memory;
};

} // namespace troupe::actors
