// Processes that append to one store at the same time: each to an app of its
// own, or all to one `app:` or `user:` key.

#pragma once

#include "measure.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace bench {

struct contention_settings {
  std::size_t rounds = 5;
  double seconds = 3; ///< Length of a round.
  /// Store of all processes. A SQLite file there is replaced.
  std::string store = "sqlite:build/bench.db";
};

/// The part of one process: the scopes that it appends to.
struct contender {
  std::string store;
  std::string app;    ///< App of its sessions.
  std::string user;   ///< User of its sessions.
  std::string key;    ///< Key of any scope that each append counts up.
  std::size_t number; ///< Number of the process.
  double seconds;     ///< Length of its round.
  /// Start of the round: microseconds of the steady clock, which is the same in
  /// all processes of a machine.
  std::uint64_t start;
};

/// Starts this program once per process, with `--contender`, and prints a row
/// for each kind of scope and number of processes.
void append_in_processes(const contention_settings& settings);

/// Appends as one of the processes, with 64 appends under way, and prints their
/// number and the 99th percentile of their latency.
void append_as(const contender& one);

} // namespace bench
