// The history of a simulation of runs that are killed and recovered.

#pragma once

#include "troupe/core/key.hpp"
#include "troupe/runtime/unfinished_run.hpp"

#include "../simulation/history.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace troupe::testing {

/// A run to start, on a session and a user of its own.
struct planned_run {
  session_key key;
  std::size_t tree = 0; ///< Index in `counted_trees()`.
  std::string id;       ///< Empty until it is started.
};

/// The start or the recovery of a run by one program. A moment is the number of
/// changes stored by then.
struct attempt_record {
  std::size_t run = 0; ///< Index of the planned run.
  std::uint64_t program = 0;
  bool recovers = false;
  std::string code = {}; ///< Empty until the attempt has ended.
  std::string reason = {};
  bool was_closing = false;
  bool was_dead = false;
};

/// A step that a program began.
struct step_record {
  std::string step; ///< As in `outside_world::note`.
  std::string key;
  std::string run; ///< Empty for models.
  std::uint64_t program = 0;
  std::size_t moment = 0;
};

/// A list of open runs, and its answer.
struct list_record {
  std::uint64_t program = 0;
  bool with_own = false;
  std::size_t before = 0;
  std::size_t after = 0;
  std::string code; ///< Empty until it is answered.
  std::vector<unfinished_run> found;
  bool was_closing = false;
  bool was_dead = false;
};

/// All of a simulation.
struct recovery_history {
  history stored;
  /// `runtime_options::run_lease` of all programs.
  std::chrono::nanoseconds lease{};
  /// True if stores fail, so that runs may fail, too.
  bool has_faults = false;
  std::vector<planned_run> runs;
  /// Deques, because completions hold the addresses of records.
  std::deque<attempt_record> attempts;
  std::deque<list_record> lists;
  std::vector<step_record> steps;
};

} // namespace troupe::testing
