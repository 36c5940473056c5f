// The answer to a write to the state of an app or a user.

#pragma once

#include "troupe/core/value.hpp"

#include <cstdint>
#include <optional>

namespace troupe {

/// A write to the state of an app or a user, as its owner has decided it.
struct shared_write {
  /// Revision that the write made in the state of the app or user.
  std::uint64_t revision = 0;
  /// Value of the key after the write; null if the key was erased. Unset only
  /// in the answer to a retry, if the value has more than 1,024 bytes.
  std::optional<troupe::value> value;

  friend bool operator==(const shared_write&, const shared_write&) = default;
};

} // namespace troupe
