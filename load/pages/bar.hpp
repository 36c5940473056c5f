// A bar of characters over the time of an invocation.

#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <string>

namespace troupe::load {

/// Maximum width of the labels before bars.
inline constexpr std::size_t bar_labels_max = 30;

/// Not thread-safe.
class bar {
public:
  /// Makes an empty bar. `columns` is at least 1.
  bar(std::chrono::nanoseconds wall, std::size_t columns)
    : wall_(wall),
      row_(columns, ' ') {}

  /// Fills the columns of a span, at least one.
  void fill(std::chrono::nanoseconds begin,
            std::chrono::nanoseconds end,
            char mark) {
    const auto from
      = std::min(static_cast<std::size_t>(column_of(begin)), row_.size() - 1);
    const auto to
      = std::clamp(static_cast<std::size_t>(std::lround(column_of(end))),
                   from + 1,
                   row_.size());
    std::fill(row_.begin() + static_cast<std::ptrdiff_t>(from),
              row_.begin() + static_cast<std::ptrdiff_t>(to),
              mark);
  }

  const std::string& text() const noexcept { return row_; }

private:
  double column_of(std::chrono::nanoseconds at) const {
    return wall_.count() == 0 ? 0.0
                              : static_cast<double>(at.count())
                                  / static_cast<double>(wall_.count())
                                  * static_cast<double>(row_.size());
  }

  std::chrono::nanoseconds wall_;
  std::string row_;
};

} // namespace troupe::load
