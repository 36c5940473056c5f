// Concurrent appends: troupe beside one global mutex, the same events, callers
// of one kind on both sides.

#pragma once

#include "measure.hpp"

namespace bench {

struct append_settings {
  std::size_t rounds = 5;
  double seconds = 0.3; ///< Of one round.
  /// The shapes to take; 0: all.
  std::size_t callers = 0;
  std::size_t sessions = 0;
};

/// Callers that are coroutines on two threads.
void append_by_tasks(const append_settings& settings);

/// Callers that are threads, through the blocking API.
void append_by_threads(const append_settings& settings);

/// Cost of an append with more and more history and state behind it.
void append_as_it_grows(const append_settings& settings);

} // namespace bench
