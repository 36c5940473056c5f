// Experiments, run: each run in an app of its own, so that no state of another
// reaches it, and with a session that stays in the store.

#pragma once

#include "troupe/load/experiment.hpp"
#include "troupe/load/machine.hpp"
#include "troupe/load/timeline.hpp"
#include "troupe/runtime/runtime.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace troupe::load {

/// What came of one run.
struct experiment_run {
  planned_run which;
  session_key session;
  /// From its start to its end, as its caller saw it.
  std::chrono::nanoseconds wall{};
  timeline line;
  /// An error code, `waiting` if the run waits for an answer from outside, or
  /// empty.
  std::string error;
  std::string reason; ///< In words.
  /// What was said last.
  std::string output;
  /// Of the keys to report those that are there, at the end.
  json state = json::object();
};

struct experiment_progress {
  std::size_t done = 0;
  std::size_t failed = 0;
  std::size_t running = 0;
  std::size_t planned = 0;
  std::chrono::milliseconds elapsed{};
  /// Nothing while it cannot be told.
  std::optional<std::chrono::milliseconds> left;
};

/// Told when a run ends, on one thread at a time.
using experiment_watcher = std::function<void(const experiment_progress&)>;

struct experiment_outcome {
  experiment made;
  /// Where the sessions are.
  std::string store;
  machine made_on;
  versions made_with;
  timestamp started{};
  std::chrono::nanoseconds elapsed{};
  /// Part of the names of the apps.
  std::string run;
  /// It was told to end early; runs that were cut off are left out.
  bool interrupted = false;
  /// By variant, input and repeat.
  std::vector<experiment_run> runs;
};

/// Runs all of it on a runtime with these options. `more` brings tools and
/// callbacks for the agent files.
///
/// The agents of every variant are made once before anything runs. Ends early,
/// with the runs that have ended, when it is told to stop. Fails with what
/// opening the store or making agents failed with; a run that fails is a
/// result.
result<experiment_outcome> run_experiment(const experiment& planned,
                                          runtime_options options,
                                          const agent_file_options& more,
                                          const experiment_watcher& watch,
                                          const std::stop_token& stop);

} // namespace troupe::load
