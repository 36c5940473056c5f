// An experiment: several variants of an agent file, each run repeatedly on the
// same inputs and from the same state.

#pragma once

#include "troupe/agents/agent_file.hpp"
#include "troupe/core/json.hpp"
#include "troupe/core/key.hpp"
#include "troupe/load/prices.hpp"
#include "troupe/models/delayed_model.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::load {

/// The differences of one variant. If none is set, the agent file runs as it
/// is.
struct variant {
  /// Name in reports and in names of apps: up to 64 letters, digits,
  /// underscores, hyphens and dots.
  std::string name;
  /// Fields of agents that replace those in the file, by agent name.
  std::map<std::string, json, std::less<>> agents = {};
  /// Name of a model for all agents, as `open_model` takes it; empty for those
  /// of the file.
  std::string model = {};
  /// Delay before each model answers, by agent.
  latencies delays = {};
  /// Results by the name of a tool. Every call of that tool gets the result,
  /// and the tool itself is not called, as with `before_tool_callback`. Tools
  /// of agents that the program has made cannot be named.
  std::map<std::string, json, std::less<>> tool_results = {};
  /// The differences as texts.
  std::vector<std::string> changes = {};
};

/// A revision of a stored session at which runs begin.
struct fork_point {
  /// The session. Each run is on a fork of it.
  session_key session;
  /// Number of the session's events that each fork has; unset: all.
  std::optional<std::uint64_t> revision = {};
};

/// Reads `SESSION@REVISION`, or `SESSION` for all events. App and user stay
/// empty. Text behind the last `@` that is no number belongs to the id.
fork_point read_fork_point(std::string_view text);

/// An experiment. Each variant runs with each input, `repeats` times.
struct experiment {
  /// Name in reports and in names of apps, under the rules of `variant::name`.
  /// By default the file's name without extension.
  std::string name;
  /// Path of the experiment file. Relative paths in it start at its folder.
  std::filesystem::path file;
  /// Path of the agent file, which all variants share.
  std::filesystem::path agent_file;
  /// The variants, at least one. A file that lists none has the variant
  /// `as_it_is`.
  std::vector<variant> variants;
  /// Messages of the user, at least one; each run gets one of them.
  std::vector<std::string> inputs;
  /// Number of runs of each variant with each input, at least 1.
  std::size_t repeats = 5;
  /// Maximum number of runs at the same time, at least 1.
  std::size_t at_once = 8;
  /// Seed of latencies and of the order of the runs.
  std::uint64_t seed = 1;
  /// Unset: each run has a new session, in an app of its own.
  std::optional<fork_point> from = {};
  /// Initial state of each session, any scope. With `from`, each fork gets an
  /// event by `system` with these keys before its run, and null erases a key;
  /// `app:` and `user:` keys are refused, since other sessions share them.
  json state = json::object();
  /// State keys to report.
  std::vector<std::string> keys = {};
  /// Time limit of one run; unset: none.
  std::optional<std::chrono::milliseconds> deadline = {};
  /// Prices of the models; null: reports have no costs.
  std::shared_ptr<const price_list> prices = {};
};

/// Reads an experiment file (docs/experiments.md lists its fields). Relative
/// paths start at the folder of the file. The agent files are not read yet.
/// Fails with `errc::not_found` if the file does not exist. Other failures are
/// `errc::invalid_argument`, with a message that starts with `FILE:LINE: `.
result<experiment> read_experiment(const std::filesystem::path& file);

/// Fails with `errc::invalid_argument` if there are no runs or more than
/// 1,000,000, or if `at_once` is 0.
result<void> check_amounts(const experiment& planned);

/// Fails with `errc::invalid_argument` if the runs begin at a session and its
/// key is not valid, or `state` is no delta, or `state` or `keys` has keys that
/// other sessions share.
result<void> check_start(const experiment& planned);

/// One run of an experiment, by index.
struct planned_run {
  std::size_t variant = 0; ///< Index in `experiment::variants`.
  std::size_t input = 0;   ///< Index in `experiment::inputs`.
  std::size_t repeat = 0;  ///< Number of the repeat, from 0.

  friend bool operator==(const planned_run&, const planned_run&) = default;
};

/// All runs, in random order by the seed, so that slow changes of the machine
/// affect all variants equally.
std::vector<planned_run> plan_runs(const experiment& planned);

/// Makes the agents of one run, with models of their own, so that a script
/// starts from its beginning. Runs of the same input and repeat have the same
/// latencies in every variant. `more` adds tools and callbacks. Fails like
/// `load_agent_file`, and if a latency or a result names no agent or tool; the
/// message names the variant.
result<agent> make_agents(const experiment& planned,
                          const planned_run& which,
                          const agent_file_options& more);

} // namespace troupe::load
