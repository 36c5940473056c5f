// Runs that are open in a store: those of killed processes, and those that
// other processes execute now.

#pragma once

#include "troupe/core/event.hpp"
#include "troupe/core/key.hpp"

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

namespace troupe {

/// An open run.
struct unfinished_run {
  session_key session;       ///< Session of the run.
  std::string invocation_id; ///< Id of the run, as in its events.
  std::string agent;         ///< Name of the root agent.
  timestamp began{};  ///< Time of the message, by the clock of the store.
  std::string holder; ///< Name of that process (docs/storage.md).
  /// Time since the last sign of life of that process, by the clock of the
  /// store. Unset if it has left the run or the store, or was found dead.
  std::optional<std::chrono::microseconds> silent;
  /// True if the run can be recovered: its process ended in this container, has
  /// left the run or the store, or was silent for longer than `run_lease`.
  bool is_free = false;
  /// True if its last recovery has claimed the run, found other agents or lost
  /// `temp:` keys, and left the run open.
  bool was_refused = false;
};

/// Options of a list of open runs.
struct unfinished_options {
  /// Also lists the runs that this runtime executes now.
  bool with_own = false;
  /// Maximum number of runs, the oldest first.
  std::size_t limit = 1'000;
};

} // namespace troupe
