// Counts the allocations of a program. For one source of a program alone.

#pragma once

#include "replaced_allocation.hpp"

#include <atomic>
#include <cstddef>

namespace troupe::testing {

/// Number of allocations of all threads since the program began.
inline std::atomic<std::size_t> allocations{0};

bool on_allocation(std::size_t) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return true;
}

} // namespace troupe::testing
