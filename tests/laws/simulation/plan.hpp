// The settings of one seed: number of programs and clients, rates of failures,
// and habits of all parts.

#pragma once

#include "troupe/runtime/runtime.hpp"

#include "changes.hpp"
#include "unsteady_store.hpp"
#include "world.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace troupe::testing {

struct plan {
  std::uint64_t seed = 0;
  /// Number of programs on the same store.
  std::size_t runtimes = 1;
  std::size_t clients = 4;
  std::size_t operations = 200;
  std::size_t users = 2;
  std::size_t sessions = 2; ///< Number of sessions of each user.
  std::size_t burst_max = 3;
  std::chrono::nanoseconds think_time{0};
  /// Weights of the actions of clients.
  std::size_t runs = 8;
  std::size_t removals = 3;
  std::size_t writes = 0; ///< Writes to shared state.
  std::size_t rewinds = 0;
  std::size_t forks = 0;
  /// One in so many reads is of an earlier revision; 0: none.
  std::size_t past_reads = 0;
  /// Before one in so many operations, a client starts to follow a session; 0:
  /// never.
  std::size_t follows = 0;
  /// One in so many operations is a retry, a crash or a restart; 0: never.
  std::size_t retries = 8;
  std::size_t crashes = 0;
  std::size_t restarts = 0;
  world::habits habits;
  store_habits store;
  change_habits changes;
  /// True if agents set keys plainly that they have read.
  bool overwrites = false;
  troupe::lost_updates lost_updates = lost_updates::tell;
  runtime_options options;
};

plan make_plan(std::uint64_t seed);

/// Returns the plan in one line.
std::string to_string(const plan& chosen);

} // namespace troupe::testing
