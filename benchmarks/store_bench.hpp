// Durable appends, and reading from a store that is full: with the device's own
// rate and the naive way beside every figure.

#pragma once

#include "troupe/stores/open_store.hpp"

#include "measure.hpp"

#include <cstddef>
#include <string>

namespace bench {

struct store_settings {
  std::string store = "sqlite:build/bench.db";
  troupe::durability durability = troupe::durability::durable;
  double seconds = 60;            ///< Of one row of durable appends.
  std::size_t callers = 0;        ///< The rows to take; 0: all.
  std::size_t sessions = 0;       ///< The same.
  std::size_t events = 1'000'000; ///< In the store that is read.
};

/// Appends per second that many callers sustain.
void append_durably(const store_settings& settings);

/// Opening, reading and appending with few and with many unrelated events in
/// the store.
void read_stored(const store_settings& settings);

} // namespace bench
