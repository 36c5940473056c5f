// What all actors of one runtime share: limits, time, threads for tools, the
// directory of sessions, and the count of what is under way.

#pragma once

#include "troupe/actors/append_wait.hpp"
#include "troupe/actors/directory.hpp"
#include "troupe/actors/job_loop.hpp"
#include "troupe/actors/retirement.hpp"
#include "troupe/actors/tool_pool.hpp"
#include "troupe/agents/plugin.hpp"
#include "troupe/core/environment.hpp"
#include "troupe/core/scope_state.hpp"

#include <caf/fwd.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace troupe::actors {

/// Pieces of work and their bytes, in one word: an append passes two counts,
/// and each atomic operation on a shared line costs as much as a hop.
class load_count {
public:
  /// Counts one piece, and says whether it is within the limits. The first one
  /// always is. Who gets false leaves again.
  bool enter(std::size_t bytes,
             std::size_t count_max,
             std::size_t bytes_max) noexcept;

  /// Whether that was the last piece.
  bool leave(std::size_t bytes) noexcept {
    return held_.fetch_sub(one + bytes, std::memory_order_seq_cst) >> bytes_bits
           == 1;
  }

  bool empty() const noexcept {
    return held_.load(std::memory_order_seq_cst) == 0;
  }

  append_load held() const noexcept {
    const auto held = held_.load(std::memory_order_relaxed);
    return {held >> bytes_bits, held & bytes_mask};
  }

private:
  static constexpr unsigned bytes_bits = 36;
  static constexpr std::uint64_t one = std::uint64_t{1} << bytes_bits;
  static constexpr std::uint64_t bytes_mask = one - 1;

  std::atomic<std::uint64_t> held_{0};
};

/// Counts work by pieces and bytes, refuses more than its limits, and lets one
/// thread wait for the end of it.
class load_gate {
public:
  load_gate(std::size_t count_max, std::size_t bytes_max)
    : count_max_(count_max),
      bytes_max_(bytes_max) {}

  /// Whether one piece of `bytes` may enter.
  bool enter(std::size_t bytes) noexcept;

  void leave(std::size_t bytes) noexcept;

  /// Blocks until nothing is inside.
  void wait_until_empty();

  bool empty() const noexcept { return held_.empty(); }

  append_load held() const noexcept { return held_.held(); }

private:
  const std::size_t count_max_;
  const std::size_t bytes_max_;
  load_count held_;
  std::atomic<bool> awaited_{false};
  std::mutex mutex_;
  std::condition_variable empty_;
};

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
};

class store_queue;

/// Kept alive by every actor.
struct setup : std::enable_shared_from_this<setup> {
  setup(caf::actor_system& on,
        std::shared_ptr<troupe::environment> time_and_ids,
        setup_options chosen);
  ~setup();

  caf::actor_system& system;
  /// Runs all that is done here; null: threads do.
  job_loop* const loop;
  const std::shared_ptr<troupe::environment> environment;
  const setup_options options;
  /// Set before the first actor.
  std::vector<plugin> plugins;
  /// Told how many events were committed together, if anybody wants to know.
  /// Set before the first actor.
  std::function<void(std::size_t events)> on_commit;
  /// Receives warnings for an operator; never unset over a store. Set before
  /// the first actor.
  std::function<void(const std::string& warning)> on_warning;
  /// Where state is kept; null when it is in memory alone. Set before the first
  /// actor, stopped after the last.
  std::unique_ptr<store_queue> store;
  app_directory apps;
  session_directory directory;
  actors::retirement retirement{*this};
  /// Appends under way, all sessions together.
  load_gate appends;
  /// How long they wait for the store.
  append_wait waits;
  /// Calls of the session service other than appends, from entry to answer.
  load_gate calls;
  /// Actors that have not ended.
  load_gate actors;
  /// Runs that have not ended.
  load_gate runs;
  /// Threads that are not the system's own and are about to schedule something
  /// there, or just have.
  load_gate senders;
  std::atomic<bool> closing{false};
  /// No actor is left, and the actor system is about to end.
  std::atomic<bool> ended{false};

  tool_pool tools;
  /// Threads that wait for the artifact store.
  tool_pool files;
  /// Null: no artifacts. Set before the first actor.
  std::shared_ptr<const artifact_service> artifacts;
};

/// Enters `job` (one reference to it) into the scheduler, from any thread, and
/// keeps the actor system until that is done.
void schedule(setup& shared, caf::resumable* job);

} // namespace troupe::actors
