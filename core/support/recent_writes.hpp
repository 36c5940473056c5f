// The newest writes of one owner that have an id, so that a write that is sent
// again takes effect once.
//
// They are stored in reserved keys of the owner's own scope, `__write/0` to
// `__write/63`, so they are durable together with the state. An owner takes
// these keys out when it loads; code that reads scopes from a store hides them.

#pragma once

#include "troupe/core/delta.hpp"
#include "troupe/core/shared_write.hpp"
#include "troupe/core/state_map.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// A write with an id, and its answer.
struct recent_write {
  std::string id;
  /// `fingerprint` of the operations.
  std::string operations;
  shared_write answer;
};

/// Not thread-safe.
class recent_writes {
public:
  /// Number of writes that are remembered.
  static constexpr std::size_t count_max = 64;

  /// Size of the largest value that is stored with a write, in bytes of compact
  /// JSON.
  static constexpr std::size_t value_bytes_max = 1'024;

  recent_writes() = default;

  /// Removes the reserved keys from `keys` and reads the writes in them. A
  /// value of another form is dropped.
  static recent_writes take_from(state_map& keys);

  /// Returns the write with this id; null if it is unknown. Valid until the
  /// next call of `add`.
  const recent_write* find(std::string_view id) const noexcept;

  /// Remembers a write in place of the oldest one. Returns the reserved key and
  /// its value, to be stored in scope `where`.
  resolution add(recent_write done, scope where);

  bool empty() const noexcept { return kept_.empty(); }

  /// Forgets all writes. Returns the reserved keys to erase in scope `where`.
  std::vector<resolution> forget_all(scope where);

private:
  struct numbered {
    std::uint64_t number;
    recent_write done;
  };

  // Write number n is at index n % 64, and in the key of this index.
  std::vector<numbered> kept_;
  std::uint64_t next_ = 0;
};

/// Removes the reserved keys of remembered writes.
void hide_recent_writes(state_map& keys);

/// Returns true if the key, without prefix, holds a remembered write.
bool is_recent_write(std::string_view name) noexcept;

/// Returns a text that is the same for the same operations, and another one for
/// others: 64 bits of a hash.
std::string fingerprint(const delta& operations);

} // namespace troupe
