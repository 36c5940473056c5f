// What all actors of one runtime share: limits, time, threads for tools, the
// directory of sessions, and the count of what is under way.

#pragma once

#include "troupe/actors/directory.hpp"
#include "troupe/actors/tool_pool.hpp"
#include "troupe/core/environment.hpp"
#include "troupe/core/scope_state.hpp"

#include <caf/fwd.hpp>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

namespace troupe::actors {

/// Counts work by pieces and bytes, refuses more than its limits, and lets one
/// thread wait for the end of it.
class load_gate {
public:
  load_gate(std::size_t count_max, std::size_t bytes_max)
    : count_max_(count_max),
      bytes_max_(bytes_max) {}

  /// Whether one piece of `bytes` may enter.
  bool enter(std::size_t bytes) noexcept {
    const auto count = count_.fetch_add(1, std::memory_order_acq_rel);
    const auto held = bytes_.fetch_add(bytes, std::memory_order_relaxed);
    if (count < count_max_ && (held == 0 || held + bytes <= bytes_max_))
      return true;
    leave(bytes);
    return false;
  }

  void leave(std::size_t bytes) noexcept;

  /// Blocks until nothing is inside.
  void wait_until_empty();

private:
  const std::size_t count_max_;
  const std::size_t bytes_max_;
  std::atomic<std::size_t> count_{0};
  std::atomic<std::size_t> bytes_{0};
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
  std::size_t remembered_ids = 0;
  std::size_t tool_threads = 0;
};

/// Kept alive by every actor.
struct setup {
  setup(caf::actor_system& on,
        std::shared_ptr<troupe::environment> time_and_ids,
        setup_options chosen)
    : system(on),
      environment(std::move(time_and_ids)),
      options(chosen),
      appends(chosen.runtime_appends_max, chosen.runtime_bytes_max),
      calls(SIZE_MAX, SIZE_MAX),
      actors(SIZE_MAX, SIZE_MAX),
      tools(chosen.tool_threads) {}

  caf::actor_system& system;
  const std::shared_ptr<troupe::environment> environment;
  const setup_options options;
  session_directory directory;
  /// Appends under way, all sessions together.
  load_gate appends;
  /// Every call of the session service, from its entry to its answer.
  load_gate calls;
  /// Actors that have not ended.
  load_gate actors;
  std::atomic<bool> closing{false};
  tool_pool tools;
};

} // namespace troupe::actors
