// An experiment: an agent file in several variants, each run on the same inputs
// again and again, from the same state.

#pragma once

#include "troupe/agents/agent_file.hpp"
#include "troupe/core/json.hpp"
#include "troupe/models/delayed_model.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe::load {

/// What is different in one variant; nothing if the agent file stands as it is.
struct variant {
  std::string name;
  /// Fields of agents that take the place of those in the file, by agent.
  std::map<std::string, json, std::less<>> agents = {};
  /// In place of the model of every agent; empty: none.
  std::string model = {};
  /// What the models of agents take, before they answer.
  latencies delays = {};
  /// The same in words.
  std::vector<std::string> changes = {};
};

struct experiment {
  std::string name;
  std::filesystem::path file;
  std::filesystem::path agent_file;
  std::vector<variant> variants;
  std::vector<std::string> inputs;
  std::size_t repeats = 5;
  /// Runs at the same time.
  std::size_t at_once = 8;
  /// Of latencies and of the order of the runs.
  std::uint64_t seed = 1;
  /// Initial state of each session, any scope.
  json state = json::object();
  /// State keys to report.
  std::vector<std::string> keys = {};
  /// For one run; unset: none.
  std::optional<std::chrono::milliseconds> deadline = {};
};

/// Reads an experiment file (docs/experiments.md lists its fields). Relative
/// paths start at the file. Fails with `errc::not_found` if there is no such
/// file, and otherwise with `errc::invalid_argument` and a reason that starts
/// with `FILE:LINE: `. The agent files are not read yet.
result<experiment> read_experiment(const std::filesystem::path& file);

/// Fails with `errc::invalid_argument` on no runs, and on too many.
result<void> check_amounts(const experiment& planned);

/// One run of it.
struct planned_run {
  std::size_t variant = 0;
  std::size_t input = 0;
  std::size_t repeat = 0;

  friend bool operator==(const planned_run&, const planned_run&) = default;
};

/// All of them, mixed by the seed, so that what changes over time hits every
/// variant alike.
std::vector<planned_run> plan_runs(const experiment& planned);

/// The agents of one run, with models of their own, so that a script starts
/// from its beginning. Runs of the same input and repeat draw the same
/// latencies in every variant. `more` brings tools and callbacks. Fails as
/// `load_agent_file`, naming the variant.
result<agent> make_agents(const experiment& planned,
                          const planned_run& which,
                          const agent_file_options& more);

} // namespace troupe::load
