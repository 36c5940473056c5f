// The queue of the processes of one machine, made of locks on the bytes of a
// file.
//
// A place is a lock on one byte. Its offset is the time of the arrival, so the
// first place is the one without a locked byte before it. A user or app that is
// wanted is marked by a shared lock on a byte below all places: its hash. The
// file stays empty. The kernel frees the locks of a process that ends.

#pragma once

#include "troupe/stores/turns/line.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <utility>

namespace troupe {

/// Used by one thread at a time.
class turn_file final : public turn_line {
public:
  /// Time since a moment that all processes share.
  using clock = std::function<std::chrono::nanoseconds()>;

  /// The first place creates the file, with mode 0600. A
  /// file that is not empty is not used: it may be a database, whose locks end
  /// when one of its descriptors is closed.
  explicit turn_file(std::filesystem::path path);
  turn_file(std::filesystem::path path, clock now);
  /// Removes the file if this line has used it and it is empty. Another process
  /// then makes a new one.
  ~turn_file() override;

  bool enter(std::span<const owner_name> wanted,
             std::chrono::milliseconds patience,
             const std::function<void()>& meanwhile = {}) override;
  bool is_wanted(std::span<const owner_name> owners) override;
  void leave() noexcept override;

  /// Takes a place at the end. Returns false if the file cannot be used.
  bool take_place();

  /// Returns the first place before this one; unset if there is none. Requires
  /// a place.
  std::optional<std::int64_t> first_before() const noexcept;

  /// Returns true if no other process has an earlier place. Requires a place.
  bool is_first() const noexcept { return !first_before(); }

  /// Ignores a place, which `first_before` has returned, and all before it.
  void pass(std::int64_t place) noexcept { first_ = place + 1; }

private:
  bool open() noexcept;
  bool is_opened_file() const noexcept;
  void close() noexcept;

  const std::filesystem::path path_;
  const clock now_;
  int file_ = -1;
  std::int64_t place_ = 0; // 0: none.
  // Earlier places are ignored. Hashes of owners have 31 bits.
  std::int64_t first_ = std::int64_t{1} << 31U;
};

} // namespace troupe
