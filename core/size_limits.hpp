// Limits of the size of values and events.

#pragma once

#include <cstddef>

namespace troupe {

/// Size limits of an owner or a boundary, in bytes of compact JSON.
struct size_limits {
  /// Maximum size of one value. A larger one fails with `errc::too_large`.
  std::size_t value_bytes_max = std::size_t{256} * 1024;
  /// Maximum size of one event. A larger one fails with `errc::too_large`.
  std::size_t event_bytes_max = std::size_t{1024} * 1024;
};

} // namespace troupe
