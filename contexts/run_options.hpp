// Options of a run: its order among the runs of the session, and its limits.

#pragma once

#include "troupe/contexts/lost_update.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace troupe {

/// The behaviour of a new run if the session already has a run.
enum class run_policy : std::uint8_t {
  queue,      ///< Waits until the earlier runs have ended.
  reject,     ///< Fails with `errc::busy`.
  interleave, ///< Runs at the same time; events of the runs mix in commit
              ///< order.
};

/// Options of one run. By default a run has no time limit.
struct run_options {
  /// The behaviour if the session already has a run; by default this one waits.
  run_policy policy = run_policy::queue;
  /// Resumes a pause that a run of a crashed process had already claimed. Its
  /// steps after the pause are executed again.
  bool take_over = false;
  /// Recovers a run (`runtime::recover`) even if it had written `temp:` keys,
  /// which no store keeps. The run goes on without them.
  bool allow_lost_temp = false;
  /// Maximum number of recoveries of one run whose process had ended without
  /// leaving it; others do not count. Another one: `errc::limit_exceeded`.
  std::size_t recoveries_max = 3;
  /// Maximum number of model calls over all lanes of the run; another one fails
  /// with `errc::limit_exceeded`.
  std::size_t model_calls_max = 500;
  /// Budget of tokens, over all lanes of the run, as the models count them
  /// (`usageMetadata.totalTokenCount`). Once it is used up, another model call
  /// fails with `errc::limit_exceeded`. Calls under way at that moment go on,
  /// so a run may end above it. Unset for none.
  std::optional<std::uint64_t> tokens_max = {};
  /// Budget of tokens of the session, as the usage in its live events counts
  /// them, those of earlier runs and of summaries included. Once it is used up,
  /// another model call fails with `errc::limit_exceeded`. A rewind gives back
  /// the tokens of the events that it takes back. Agents that are tools leave
  /// no events, so their tokens count for `tokens_max` alone. Unset for none.
  std::optional<std::uint64_t> session_tokens_max = {};
  /// Maximum number of retries of model requests, over all lanes of the run.
  std::size_t model_retries_max = 100;
  /// Maximum depth of nested agents.
  std::size_t agent_depth_max = 64;
  /// Maximum number of lanes of one fan-out that run at the same time; at
  /// least 1.
  std::size_t lanes_max = 65'536;
  /// Maximum number of tools of the run that run at the same time; at least 1.
  /// Others wait in order. Agents that are tools do not count, but their tools
  /// do.
  std::size_t tool_calls_max = 1'024;
  /// The effect of a plain write of a key that has changed since its step read
  /// it. By default such lost updates are counted and told
  /// (`run::lost_updates`).
  troupe::lost_updates lost_updates = lost_updates::tell;
  /// Maximum number of retries of one `invocation_context::update`; then it
  /// fails with `errc::conflict`. Of `n` concurrent updates of one key, one may
  /// need `n - 1` retries.
  std::size_t update_retries_max = 1'000;
  /// Time limit of one model call. After it, the call is asked to stop and
  /// fails with `errc::deadline_exceeded`. Unset for none.
  std::optional<std::chrono::milliseconds> model_timeout = {};
  /// Time limit of one call of a tool that has no `timeout` of its own. Unset
  /// for none.
  std::optional<std::chrono::milliseconds> tool_timeout = {};
  /// Time limit of the run from its start; then it is cancelled and ends with
  /// `errc::deadline_exceeded`. Unset for none.
  std::optional<std::chrono::milliseconds> deadline = {};
  /// Records the working times of models and tools in the events of the run,
  /// for timelines (load/timeline.hpp).
  bool step_times = false;
  /// Time that a cancelled run waits for a tool that ignores its stop token,
  /// before the run abandons the tool.
  std::chrono::milliseconds grace{5'000};
};

} // namespace troupe
