// The runtime: the owners, the threads they run on, and the way in.

#pragma once

#include "troupe/agents/agent.hpp"
#include "troupe/agents/plugin.hpp"
#include "troupe/core/environment.hpp"
#include "troupe/runtime/run.hpp"
#include "troupe/runtime/session_service.hpp"
#include "troupe/stores/artifact_store.hpp"
#include "troupe/stores/open_store.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe {

struct runtime_options {
  /// Where state is kept: `memory:`, `sqlite:PATH` or `postgres:URL`.
  std::string store = "memory:";
  /// What "acknowledged" means with a store.
  troupe::durability durability = durability::durable;
  /// Bytes of the write-ahead log of a SQLite file above which commits fail
  /// with `errc::store_failed`; 0: no bound. See `store_options`.
  std::uint64_t store_log_bytes_max = 0;
  /// A store of one's own, in place of `store`. The runtime closes it.
  std::shared_ptr<troupe::store> custom_store = {};
  /// Where artifacts are kept: `memory:` or `file:PATH`. Empty: in memory if
  /// the state is there, too, and nowhere over a store.
  std::string artifacts = {};
  /// An artifact store of one's own, in place of `artifacts`.
  std::shared_ptr<artifact_store> custom_artifacts = {};
  /// Time and ids; unset: the system's.
  std::shared_ptr<troupe::environment> environment = {};
  /// Run around all runs, in this order.
  std::vector<plugin> plugins = {};
  /// Told how many events each commit has: those that a session decides
  /// together, or over a store those of one transaction. Called on the threads
  /// that commit, several at the same time, so it must neither block nor throw.
  std::function<void(std::size_t events)> on_commit = {};
  /// Receives warnings for an operator about conditions that fail no call, one
  /// sentence each: commits that the store has lost. Called from any thread;
  /// must not block or throw. Unset: lines on stderr.
  std::function<void(const std::string& warning)> on_warning = {};
  /// Threads that run actors; 0: one per core.
  std::size_t threads = 0;
  /// Threads that run tools, which may block.
  std::size_t tool_threads = 16;
  size_limits limits = {};
  /// Appends under way before further ones are `errc::busy`: per session, and
  /// for the whole runtime in bytes.
  std::size_t session_appends_max = 65'536;
  std::size_t session_bytes_max = std::size_t{256} << 20U;
  std::size_t runtime_appends_max = 1'000'000;
  std::size_t runtime_bytes_max = std::size_t{1} << 30U;
  /// How long a further append may be expected to wait for the store before it
  /// is `errc::busy`; zero: never. Without a store the counts above decide
  /// alone.
  std::chrono::nanoseconds append_wait_max = std::chrono::seconds(1);
  /// Runs that have not ended, before further ones are `errc::busy`.
  std::size_t runs_max = 100'000;
  /// Ids of its newest events that a session over a store keeps in memory.
  /// Older ones are looked up there when an append brings an id of its own.
  std::size_t remembered_ids = 4'096;
  /// Events of a session that stay in memory, of those in a store; a run holds
  /// all of its session's.
  std::size_t events_kept = 64;
  /// Over a store idle sessions leave memory, and come back on demand: the
  /// longest unused when there are more than this, and those unused for
  /// `session_idle_max` (zero: never).
  std::size_t live_sessions_max = 10'000;
  std::chrono::nanoseconds session_idle_max = std::chrono::minutes(10);
};

namespace detail {
class session_backend;
}

class runtime {
public:
  /// Fails with `errc::invalid_argument` on an unknown store or a bad path,
  /// `errc::store_failed` and `errc::corrupt` when the store does not open.
  static result<runtime> open(runtime_options options = {});

  explicit runtime(std::shared_ptr<detail::session_backend> backend);
  runtime(runtime&&) noexcept;
  runtime& operator=(runtime&&) noexcept;

  /// Shuts down. Not to be called from a thread of the runtime itself.
  ~runtime();

  session_service& sessions() noexcept;

  /// Appends the user's message to the session and runs `root` on it. Returns
  /// at once; what can go wrong, an unknown session included, ends the run with
  /// that error. A run on a session that the caller itself is running in is
  /// `errc::would_deadlock`, unless its policy is `interleave`.
  troupe::run run(const agent& root,
                  const session_key& session,
                  content message,
                  run_options options = {});
  troupe::run run(const agent& root,
                  const session_key& session,
                  std::string message,
                  run_options options = {});

  /// Null if the runtime keeps none. Its calls block.
  std::shared_ptr<artifact_store> artifacts() const noexcept;

  const std::shared_ptr<troupe::environment>& environment() const noexcept;

  /// Refuses new work (`errc::cancelled`), cancels runs, lets appends under way
  /// finish, and ends all threads. Idempotent. Waits for completions, agents
  /// and tools, and so must not be called by them; the same holds for dropping
  /// the runtime. Says whether the store was closed in good order; what was
  /// acknowledged is in it in any case.
  result<void> shut_down();

  const std::shared_ptr<detail::session_backend>& backend() const noexcept {
    return backend_;
  }

private:
  std::shared_ptr<detail::session_backend> backend_;
  std::unique_ptr<session_service> sessions_;
};

} // namespace troupe
