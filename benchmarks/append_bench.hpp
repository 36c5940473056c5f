// Concurrent appends: troupe and one global mutex, with the same events and the
// same kind of callers.

#pragma once

#include "measure.hpp"

namespace bench {

struct append_settings {
  std::size_t rounds = 5;
  double seconds = 0.3; ///< Length of a round.
  /// Selects shapes; 0: all.
  std::size_t callers = 0;
  std::size_t sessions = 0;
};

/// Callers are coroutines on two threads.
void append_by_tasks(const append_settings& settings);

/// Callers are threads that use the blocking API.
void append_by_threads(const append_settings& settings);

/// Cost of an append depending on the size of history and state.
void append_as_it_grows(const append_settings& settings);

} // namespace bench
