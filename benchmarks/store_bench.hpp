// Durable appends, and reads of a large store, compared with the device's sync
// rate and a simple baseline.

#pragma once

#include "troupe/stores/open_store.hpp"

#include "measure.hpp"

#include <cstddef>
#include <string>

namespace bench {

struct store_settings {
  std::string store = "sqlite:build/bench.db";
  troupe::durability durability = troupe::durability::durable;
  double seconds = 60;            ///< Length of a row of durable appends.
  std::size_t callers = 0;        ///< Selects rows; 0: all.
  bool blocked = false;           ///< Callers are threads, not coroutines.
  std::size_t sessions = 0;       ///< Selects rows; 0: all.
  std::size_t events = 1'000'000; ///< Number of events in the store.
};

/// Appends per second of many callers.
void append_durably(const store_settings& settings);

/// Opening, reading and appending, with few and with many unrelated events in
/// the store.
void read_stored(const store_settings& settings);

} // namespace bench
