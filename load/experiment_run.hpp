// Runs experiments. Each run has an app of its own, so that runs share no
// state, and a session that stays in the store. The runs of an experiment that
// begins at a stored session are on forks of that session instead, in its app.
//
// Invariant: the results of a run come from its own events. The past of a fork
// counts for nothing.

#pragma once

#include "troupe/core/event_log.hpp"
#include "troupe/core/session_diff.hpp"
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

/// Result of one run.
struct experiment_run {
  /// Variant, input and repeat, by index.
  planned_run which;
  /// Key of the session in the store.
  session_key session;
  /// Time from start to end, as measured by the caller; 0 if the session could
  /// not be created.
  std::chrono::nanoseconds wall{};
  /// Timeline from the run's events; empty if the log could not be read.
  timeline line;
  /// An error code; `waiting` if the run waits for an answer from outside; or
  /// empty.
  std::string error;
  std::string reason; ///< Message of the error.
  /// The last text of the run that is not by `user`; may be empty.
  std::string output;
  /// Final values of the reported keys, as far as they are set.
  json state = json::object();
  /// The session's own keys that the run has changed, in the order of their
  /// bytes.
  std::vector<key_difference> changes;
};

/// Counts of the runs of an experiment that is under way.
struct experiment_progress {
  /// `experiment_outcome::run`.
  std::string run;
  /// Ended, with or without an error.
  std::size_t done = 0;
  /// Ended with an error, or waiting for an answer from outside.
  std::size_t failed = 0;
  std::size_t running = 0;             ///< Under way.
  std::size_t planned = 0;             ///< All runs of the experiment.
  std::chrono::milliseconds elapsed{}; ///< Time since the start.
  /// Estimated remaining time; unset while unknown.
  std::optional<std::chrono::milliseconds> left;
};

/// Called before the first run and when a run ends, on one thread at a time.
/// Must be short and must not throw.
using experiment_watcher = std::function<void(const experiment_progress&)>;

/// Results of an experiment.
struct experiment_outcome {
  /// The experiment as it was planned. The revision of `from` is set.
  experiment made;
  /// The last live events before the fork, at most 32; empty without `from`.
  event_slice past;
  /// Address of the store with the sessions (`runtime_options::store`), without
  /// a password.
  std::string store;
  /// The machine that ran it.
  machine made_on;
  /// Versions of the software that ran it.
  versions made_with;
  /// Time of the start by the runtime's clock.
  timestamp started{};
  /// Duration of all runs, without the opening and closing of the store.
  std::chrono::nanoseconds elapsed{};
  /// Part of the names of the apps, or of the ids of the forks.
  std::string run;
  /// The experiment was ended early; interrupted runs are left out.
  bool interrupted = false;
  /// Ordered by variant, input and repeat.
  std::vector<experiment_run> runs;
  /// Sessions of all runs that were started, also of those that are left out of
  /// `runs`. A session may be missing in the store if it could not be created.
  std::vector<session_key> sessions;
};

/// Runs an experiment on a runtime with these options. `more` adds tools and
/// callbacks for the agent files.
///
/// Fails as `check_amounts` does. `watch` may be empty. Blocks until all runs
/// have ended. When `stop` is requested, cancels the runs under way and returns
/// those that have ended.
///
/// The agents of every variant are made once before the first run, and again
/// for each run. Fails as `check_start`, `make_agents` and `runtime::open` do,
/// and with the error of closing the store; no results are returned then. With
/// `experiment::from`, fails before the first run with `errc::not_found` if
/// there is no such session or revision, and with `errc::invalid_argument` over
/// a store of your own that cannot fork (`store::can_fork`). The sessions of
/// runs that have ended stay in the store. Throws an exception of the
/// experiment itself, such as `std::bad_alloc`. A failed run is a result, not a
/// failure.
result<experiment_outcome> run_experiment(const experiment& planned,
                                          runtime_options options,
                                          const agent_file_options& more,
                                          const experiment_watcher& watch,
                                          const std::stop_token& stop);

} // namespace troupe::load
