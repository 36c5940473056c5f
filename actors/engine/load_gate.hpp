// Bounds the work under way, by pieces and bytes, and lets one thread wait
// until all of it has ended.

#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace troupe::actors {

/// Number of appends, and the bytes of their events.
struct append_load {
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
};

/// Counts pieces of work and their bytes in one atomic word. An append passes
/// two such counters, and each atomic operation on a shared cache line costs as
/// much as sending a letter.
class load_count {
public:
  /// Counts one piece, and returns true if the limits allow it. The byte limit
  /// never refuses the only piece. After a false result the caller must call
  /// `leave`.
  bool enter(std::size_t bytes,
             std::size_t count_max,
             std::size_t bytes_max) noexcept;

  /// Removes one piece. Returns true if it was the last one.
  bool leave(std::size_t bytes) noexcept {
    return held_.fetch_sub(one + bytes, std::memory_order_seq_cst) >> bytes_bits
           == 1;
  }

  bool empty() const noexcept {
    return held_.load(std::memory_order_seq_cst) == 0;
  }

  append_load held() const noexcept {
    const auto held = held_.load(std::memory_order_relaxed);
    return {held >> bytes_bits, held & bytes_mask};
  }

private:
  static constexpr unsigned bytes_bits = 36;
  static constexpr std::uint64_t one = std::uint64_t{1} << bytes_bits;
  static constexpr std::uint64_t bytes_mask = one - 1;

  std::atomic<std::uint64_t> held_{0};
};

/// Counts pieces of work and bytes, refuses work above its limits, and lets one
/// thread wait until all work has ended.
class load_gate {
public:
  load_gate(std::size_t count_max, std::size_t bytes_max)
    : count_max_(count_max),
      bytes_max_(bytes_max) {}

  /// Counts one piece of `bytes`. Returns false, and counts nothing, at a
  /// limit.
  bool enter(std::size_t bytes) noexcept;

  void leave(std::size_t bytes) noexcept;

  /// Blocks until no piece is counted.
  void wait_until_empty();

  bool empty() const noexcept { return held_.empty(); }

  append_load held() const noexcept { return held_.held(); }

private:
  const std::size_t count_max_;
  const std::size_t bytes_max_;
  load_count held_;
  std::atomic<bool> awaited_{false};
  std::mutex mutex_;
  std::condition_variable empty_;
};

} // namespace troupe::actors
