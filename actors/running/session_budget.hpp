// The budget of tokens of a run's session.

#pragma once

#include "troupe/agents/turns/session_tokens.hpp"
#include "troupe/contexts/lanes/host.hpp"
#include "troupe/contexts/task.hpp"
#include "troupe/core/error.hpp"

#include <cstdint>
#include <mutex>
#include <optional>

namespace troupe {
class invocation_context;
}

namespace troupe::actors {

struct run_shared;

/// Counts the tokens of one session for the lanes of a run. Thread-safe.
class session_budget {
public:
  /// Starts with a count that includes all events before those that the run
  /// keeps in memory.
  void start(token_count counted);

  /// Returns the tokens of all live events in `seen`. Not before `start`.
  std::uint64_t used(const step_view& seen);

  token_count counted() const;

private:
  mutable std::mutex mutex_;
  token_count counted_;
};

/// Counts the session's events before the run asks a model. Reads those that
/// are in no earlier count of this runtime; all of them if there is none.
task<> start_budget(run_shared& run, invocation_context& context);

/// The reason not to ask another model, if the budget of the session is used
/// up.
std::optional<error> check_budget(run_shared& run);

} // namespace troupe::actors
