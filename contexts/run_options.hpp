// How a run behaves: its turn on the session, its limits, its observers.

#pragma once

#include "troupe/core/json.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

namespace troupe {

/// What happens when a session already has a run.
enum class run_policy : std::uint8_t {
  queue,      ///< Wait until the earlier runs have ended.
  reject,     ///< Fail with `errc::busy`.
  interleave, ///< Run at the same time; events of the runs mix in commit order.
};

struct run_options {
  run_policy policy = run_policy::queue;
  /// Delta of the user's message, any scope: `{"user:name": "Ann", "temp:text":
  /// …}`.
  json state_delta = json::object();
  /// The message answers a question that another run has gone on with already,
  /// whose program has ended before it. What that run had done is done again.
  bool take_over = false;
  /// Over all lanes of the run; one more is `errc::limit_exceeded`.
  std::size_t model_calls_max = 500;
  /// Requests that models may send again, over all lanes of the run.
  std::size_t model_retries_max = 100;
  /// Agents below each other.
  std::size_t agent_depth_max = 64;
  /// Lanes of one fan-out that run at the same time, at least 1.
  std::size_t lanes_max = 65'536;
  /// Tools of the run that run at the same time, at least 1; further ones wait
  /// in order. Agents that are tools do not count, but their tools do.
  std::size_t tool_calls_max = 1'024;
  /// For one call of a model; then it is asked to stop, and has failed with
  /// `errc::deadline_exceeded`. Unset: none.
  std::optional<std::chrono::milliseconds> model_timeout = {};
  /// For one call of a tool that has no `timeout` of its own. Unset: none.
  std::optional<std::chrono::milliseconds> tool_timeout = {};
  /// From the start of the run; then it is cancelled and ends with
  /// `errc::deadline_exceeded`. Unset: none.
  std::optional<std::chrono::milliseconds> deadline = {};
  /// Writes into the events of the run when their models and tools worked
  /// (`agents/step_times.hpp`), for timelines.
  bool step_times = false;
  /// Told on a thread of the runtime when an agent starts and ends; must be
  /// short and must not throw.
  std::function<void(std::string_view agent, bool started)> on_agent = {};
  /// How long a cancelled run waits for a tool that ignores its stop token,
  /// before it abandons it.
  std::chrono::milliseconds grace{5'000};
};

} // namespace troupe
