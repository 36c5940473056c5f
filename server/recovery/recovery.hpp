// The recovery of one open run, from its start to its end.

#pragma once

#include "troupe/server/adk/served.hpp"

#include <functional>
#include <string>

namespace troupe::serving {

/// Receives an outcome, on any thread. Must not block or throw.
using outcome_call = std::function<void(const result<void>&)>;

/// The receivers of a recovery. An empty one is not called.
struct recovery_calls {
  /// Called once: when the run has a new event or has ended, or after two
  /// seconds. Has the error of a run that failed within this time, before its
  /// first new event.
  outcome_call begun;
  /// Called once, with the outcome of the run.
  outcome_call ended;
};

/// Recovers a run with the root agent of its app. The run is one of
/// `served::runs` until its end. Fails with `errc::busy`, and calls nothing, if
/// the server has the run under way, or recovers or closes it at this moment.
result<void> start_recovery(const served_ptr& on,
                            const agent& root,
                            const session_key& session,
                            const std::string& invocation_id,
                            const run_options& options,
                            recovery_calls calls);

/// Returns the error about a run that `running::reserve` does not give.
error run_is_taken(const std::string& invocation_id);

} // namespace troupe::serving
