// Random choices that a seed replays on every machine.

#pragma once

#include "troupe/core/support/scattered.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>

namespace troupe::testing {

class dice {
public:
  explicit dice(std::uint64_t seed) : state_(scattered(seed)) {}

  std::uint64_t next() noexcept { return scattered(state_++); }

  /// A number from 0 to `bound - 1`.
  std::size_t below(std::size_t bound) noexcept {
    return static_cast<std::size_t>(next() % bound);
  }

  /// True once in `count` calls on average; never if `count` is 0.
  bool one_in(std::size_t count) noexcept {
    return count > 0 && below(count) == 0;
  }

  template <class Range>
  const auto& pick(const Range& from) noexcept {
    return *std::next(std::begin(from),
                      static_cast<std::ptrdiff_t>(below(std::size(from))));
  }

  /// A duration up to `longest`: most often short, sometimes much longer.
  std::chrono::nanoseconds time(std::chrono::nanoseconds longest) noexcept {
    const auto most = static_cast<std::size_t>(longest.count()) + 1;
    if (one_in(4))
      return std::chrono::nanoseconds(0);
    return std::chrono::nanoseconds(below(one_in(8) ? most : most / 16 + 1));
  }

private:
  std::uint64_t state_;
};

} // namespace troupe::testing
