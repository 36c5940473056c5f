// The runtime: opens the store, runs the owners of sessions on its threads, and
// starts runs of agents.

#pragma once

#include "troupe/agents/agent.hpp"
#include "troupe/agents/compaction.hpp"
#include "troupe/agents/plugin.hpp"
#include "troupe/core/environment.hpp"
#include "troupe/runtime/run.hpp"
#include "troupe/runtime/session_service.hpp"
#include "troupe/runtime/unfinished_run.hpp"
#include "troupe/stores/store_options.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

class artifact_store;
class memory_service;
class store;

/// Options of a runtime. The defaults suit tests and small programs; a durable
/// service sets `store`.
struct runtime_options {
  /// Location of the state: `memory:`, `sqlite:PATH`, `postgres:URL`,
  /// `apps:FILE` (several databases), or a store of your own, which the runtime
  /// closes.
  location<troupe::store> store = "memory:";
  /// Faults that acknowledged events survive, if there is a store.
  troupe::durability durability = durability::durable;
  /// Limit in bytes of the write-ahead log of a SQLite file. Above it commits
  /// fail with `errc::store_failed`. Unset: no limit. See `store_options`.
  std::optional<std::uint64_t> store_log_bytes_max = {};
  /// Location of artifacts: `memory:`, `file:PATH`, or a store of your own.
  /// Empty: in memory if the state is in memory; over a store, artifacts are
  /// off.
  location<artifact_store> artifacts = {};
  /// Location of the memory of users: `memory:`, `sqlite:PATH` (a file of its
  /// own), `postgres:URL`, or a service of your own. Empty: memory is off, as
  /// without a memory service in ADK.
  location<memory_service> memory = {};
  /// Source of time and ids; unset: the system's.
  std::shared_ptr<troupe::environment> environment = {};
  /// Plugins that are called around all runs, in this order.
  std::vector<plugin> plugins = {};
  /// Summaries that replace old events of long conversations for the models,
  /// made at the end of runs. Unset: none are made, and only agents with
  /// `include_contents::since_summary` read those of a session.
  std::optional<compaction_options> compaction = {};
  /// Receives the number of changes in each commit. Over a store a commit is
  /// one transaction. With `memory:` it is the batch of appends and creations
  /// that one session decides together. Called on the threads that commit,
  /// concurrently; these may be threads of blocked callers. Must not block or
  /// throw.
  std::function<void(std::size_t changes)> on_commit = {};
  /// Receives warnings for an operator, one sentence each, about conditions
  /// that fail no call: commits that the store has lost, updates that a run has
  /// lost (`run_options::lost_updates`), runs that wait for other processes.
  /// Called on any thread; must not block or throw. Unset: lines on stderr.
  std::function<void(const std::string& warning)> on_warning = {};
  /// Threads that run actors; 0: one per core.
  std::size_t threads = 0;
  /// Threads that run tools, which may block.
  std::size_t tool_threads = 16;
  /// Size limits of values and events. Above them, appends fail with
  /// `errc::too_large`.
  size_limits limits = {};
  /// Number of appends under way in one session. Above this and the next three
  /// limits, appends fail with `errc::busy`.
  std::size_t session_appends_max = 65'536;
  /// Bytes of the events of appends under way in one session.
  std::size_t session_bytes_max = std::size_t{256} << 20U;
  /// Number of appends under way in the whole runtime.
  std::size_t runtime_appends_max = 1'000'000;
  /// Bytes of the events of appends under way in the whole runtime.
  std::size_t runtime_bytes_max = std::size_t{1} << 30U;
  /// Limit of the time that an append is expected to wait for the store. Above
  /// it the append fails with `errc::busy`. Unset: no limit. Not used without a
  /// store.
  std::optional<std::chrono::nanoseconds> append_wait_max
    = std::chrono::seconds(1);
  /// Limit of runs that have not ended. Further runs fail with `errc::busy`.
  std::size_t runs_max = 100'000;
  /// Number of event ids that a session over a store keeps in memory, the
  /// newest ones. Older ids are looked up in the store when a caller sends
  /// events with ids of its own.
  std::size_t remembered_ids = 4'096;
  /// Number of events that a session over a store keeps in memory, the newest
  /// ones. During a run the session also keeps the events that the agents read
  /// (`agent::reads`).
  std::size_t events_kept = 64;
  /// Limit of the sessions that have an actor. Above it, idle sessions give up
  /// theirs, those with the longest time without use first. Over a store they
  /// leave memory and are loaded again on demand.
  std::size_t live_sessions_max = 10'000;
  /// Time without use after which a session over a store leaves memory. Unset:
  /// no limit.
  std::optional<std::chrono::nanoseconds> session_idle_max
    = std::chrono::minutes(10);
  /// Period in which a runtime over a store asks for changes of other processes
  /// while a follower waits. Unset: other processes' events are noticed with
  /// the next call on the store.
  std::optional<std::chrono::nanoseconds> follow_period
    = std::chrono::milliseconds(20);
  /// Time without a sign of life, by the clock of the store, after which others
  /// may recover the runs of a process. Its end is seen at once by processes in
  /// the same container. A runtime with open runs writes three signs in this
  /// time. Use one value in all processes of a store. Not used without a store.
  std::chrono::nanoseconds run_lease = std::chrono::seconds(10);
};

class runtime;

namespace detail {
class session_backend;
const std::shared_ptr<session_backend>& backend_of(const runtime& on) noexcept;
} // namespace detail

/// Sessions, runs of agents, artifacts and memories in one process. All members
/// are thread-safe except moves and destruction.
class runtime {
public:
  /// Opens a runtime. Fails with `errc::invalid_argument` for an unknown store,
  /// a bad path, a bad plugin, a bad compaction, a lease of 0 or a limit of 0
  /// that could be unset, and with `errc::store_failed` or `errc::corrupt` if
  /// the store cannot be opened.
  static result<runtime> open(runtime_options options = {});

  /// Wraps a back end that `open` or `open_runtime` has made.
  explicit runtime(std::shared_ptr<detail::session_backend> backend);
  /// Takes the runtime over. References to `sessions()` stay valid. The
  /// moved-from object can only be assigned to or destroyed.
  runtime(runtime&&) noexcept;
  /// Exchanges both runtimes. The former one shuts down when the other object
  /// is destroyed.
  runtime& operator=(runtime&&) noexcept;

  /// Shuts down. Must not be called on a thread of the runtime.
  ~runtime();

  /// Creates, reads, lists, deletes and appends to sessions.
  session_service& sessions() noexcept;

  /// Appends the user's message to the session and runs `root` on it. Returns
  /// at once; every failure ends the run and is its error: `errc::not_found`
  /// (create the session first), `errc::invalid_argument` (a message without
  /// parts or with a function call, or a limit or time that allows nothing),
  /// `errc::busy` (too many runs, or another one under `run_policy::reject`;
  /// try again later), `errc::conflict` (another run has continued from the
  /// pause that the message answers),
  /// `errc::would_deadlock` (the caller is itself a run on this session, and
  /// the policy is not `interleave`). Runs that one thread starts on one
  /// session start in the order of the calls.
  troupe::run run(const agent& root,
                  const session_key& session,
                  user_message message,
                  run_options options = {});

  /// Continues a run whose process has ended before it, from its last committed
  /// event (docs/consistency.md). `root` is the agent that the run began with.
  /// Agents and nodes that had ended are skipped; the others go on, and calls
  /// of models and tools that were under way are made again with the same ids.
  /// The handle delivers the events that are new.
  ///
  /// Returns at once. A failure ends the run and is its error, one of `run` or:
  /// `errc::not_found` if the session has no such open run; `errc::busy` if it
  /// is active in this runtime, or in a process that has not ended as far as
  /// known (try again after `runtime_options::run_lease`);
  /// `errc::limit_exceeded` by `run_options::recoveries_max`; `errc::conflict`
  /// if the run has paused (answer it), has lost `temp:` keys
  /// (`run_options::allow_lost_temp`), began with other agents, or was
  /// recovered by another process (nothing to do). A process that was only slow
  /// can commit nothing more of its run: it ends there with
  /// `errc::cancelled`.
  troupe::run recover(const agent& root,
                      const session_key& session,
                      std::string invocation_id,
                      run_options options = {});

  /// Lists the open runs of an app, the oldest first; an empty name: of all
  /// apps. A run is open from its message until its end. A run of a process
  /// that was killed, or that shut down meanwhile, stays open; another process
  /// can recover it. A run that ended just before its process was killed may be
  /// listed, too. Lists nothing without a store, as state in memory ends with
  /// its process. Fails with `errc::invalid_argument` for a bad name or a limit
  /// of 0, or if the store keeps no open runs (`store::can_list_runs`), and
  /// otherwise like `session_service::list`.
  pending<std::vector<unfinished_run>>
  unfinished(std::string app, unfinished_options options = {});

  /// Gives up an open run: it is no longer listed, and cannot be recovered. Its
  /// events and its state stay. Completes when the store has closed the run.
  /// Fails with `errc::not_found` if the session has no such open run,
  /// `errc::busy` if the run is active in this runtime, or in another process
  /// that has not ended as far as known (`runtime_options::run_lease`), and
  /// otherwise like `unfinished`.
  pending<void> close_run(const session_key& session,
                          std::string invocation_id);

  /// The artifact store (stores/artifact_store.hpp), whose calls block; null if
  /// artifacts are off.
  std::shared_ptr<artifact_store> artifacts() const noexcept;

  /// The memory of users (stores/memory_service.hpp), whose calls block; null
  /// if memory is off. `session_service::add_to_memory` adds a session to it.
  std::shared_ptr<memory_service> memory() const noexcept;

  /// The source of time and ids.
  const std::shared_ptr<troupe::environment>& environment() const noexcept;

  /// Refuses new work with `errc::cancelled`, cancels runs, lets appends under
  /// way finish, and ends all threads. Later calls return the first result.
  /// Waits for completions, agents and tools, so none of these may call it or
  /// destroy the runtime. Fails if the store could not be closed properly, or a
  /// plugin's `close` has failed; acknowledged events are stored in any case.
  result<void> shut_down();

private:
  friend const std::shared_ptr<detail::session_backend>&
  detail::backend_of(const runtime& on) noexcept;

  std::shared_ptr<detail::session_backend> backend_;
  std::unique_ptr<session_service> sessions_;
};

} // namespace troupe
