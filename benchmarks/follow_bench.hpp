// Appends at a fixed rate on sessions that are followed.

#pragma once

#include "measure.hpp"

#include <cstddef>

namespace bench {

struct follow_settings {
  std::size_t rounds = 5;
  double seconds = 2;
};

/// Prints the latency of appends without followers and with 100 followers of
/// each session, and how late the events are delivered: in memory, over SQLite,
/// and to followers of another runtime on the same file.
void follow_sessions(const follow_settings& settings);

} // namespace bench
