// Histogram of durations in a load test, to three significant digits, in
// constant memory.
//
// The buckets are log-linear, as in HdrHistogram: each power of two is cut into
// 1024 of equal width. All non-empty buckets lie between those of `min()` and
// `max()`. No correction for coordinated omission: the load is an open model,
// and a duration runs from the intended start.

#pragma once

#include "troupe/core/error.hpp"
#include "troupe/core/json.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace troupe::load {

/// A computed duration, between two nanoseconds.
using fractional_nanoseconds = std::chrono::duration<double, std::nano>;

namespace detail {

// Maps durations to buckets. Durations below `2 * per_octave` ns have buckets 1
// ns wide; above, the width doubles with each power of two.
struct log_linear {
  static constexpr int per_octave_bits = 10;
  static constexpr std::size_t per_octave = std::size_t{1} << per_octave_bits;

  static constexpr std::size_t index_of(std::chrono::nanoseconds value) {
    const auto count = static_cast<std::uint64_t>(value.count());
    const auto shift = static_cast<std::size_t>(
      std::bit_width(count | per_octave) - per_octave_bits - 1);
    return (shift << per_octave_bits) + (count >> shift);
  }

  static constexpr std::chrono::nanoseconds low_of(std::size_t index) {
    const auto shift = std::max<std::size_t>(index >> per_octave_bits, 1) - 1;
    return std::chrono::nanoseconds((index - (shift << per_octave_bits))
                                    << shift);
  }
};

} // namespace detail

/// Counts durations.
///
/// The error is 0 below 2048 ns, and less than 0.1 % up to `trackable_max`;
/// longer durations count as overflow. Takes 219 kB, allocated on construction.
/// Not thread-safe: each recording thread has its own histogram, and these are
/// merged. A moved-from histogram can only be assigned to or destroyed.
class histogram {
private:
  using cells = detail::log_linear;

  // The last cell holds all durations above the bucket of 60 s.
  static constexpr std::size_t overflow_cell
    = cells::index_of(std::chrono::seconds(60)) + 1;

public:
  /// The longest duration that does not overflow: the end of the bucket of 60
  /// s, 60.029 s.
  static constexpr std::chrono::nanoseconds trackable_max
    = cells::low_of(overflow_cell) - std::chrono::nanoseconds(1);

  /// The layout in HdrHistogram's terms: buckets that double in width, each
  /// with this many sub-buckets; all but the first use only the upper half of
  /// them.
  static constexpr std::size_t bucket_count
    = (overflow_cell - 1) / cells::per_octave;
  /// Number of sub-buckets in each bucket: 2048.
  static constexpr std::size_t sub_bucket_count = 2 * cells::per_octave;

  /// One bucket: the number of durations from `low` to `high`, both included.
  /// The overflow bucket ends at `max()`.
  struct bucket {
    std::chrono::nanoseconds low{0};  ///< The shortest duration that it holds.
    std::chrono::nanoseconds high{0}; ///< The longest duration that it holds.
    std::uint64_t count = 0;          ///< Number of durations in it.

    friend bool operator==(const bucket&, const bucket&) = default;
  };

  /// One row of a percentile distribution: `count` durations, at least
  /// `percentile` of 100, are not longer than `value`.
  struct percentile_row {
    double percentile = 0; ///< Share in percent, from 0 to 100.
    /// Upper end of a bucket; `max()` for the overflow.
    std::chrono::nanoseconds value{0};
    std::uint64_t count = 0; ///< Number of durations up to `value`.

    friend bool operator==(const percentile_row&, const percentile_row&)
      = default;
  };

  histogram() : counts_(overflow_cell + 1) {}

  /// Counts `value`. A negative duration counts as zero: the call started
  /// before it was due.
  void record(std::chrono::nanoseconds value) noexcept { add(value, 1); }

  /// Counts `value` `count` times, which may be 0. All counts of a histogram
  /// together must stay below 2^64.
  void record(std::chrono::nanoseconds value, std::uint64_t count) noexcept {
    if (count > 0)
      add(value, count);
  }

  /// Adds all durations of `other`, as if they had been recorded here.
  void merge(const histogram& other) noexcept;

  /// Removes the durations of `earlier`, an older copy of this histogram.
  ///
  /// Afterwards `min()` and `max()` are only as exact as the buckets; `max()`
  /// stays exact if it was recorded since. Fails with `errc::invalid_argument`,
  /// and changes nothing, if `earlier` has a bucket with a higher count.
  result<void> subtract(const histogram& earlier);

  /// Removes all durations. Keeps the memory.
  void clear() noexcept;

  /// Number of durations, including the overflow.
  std::uint64_t count() const noexcept { return count_; }

  /// Returns true if no duration is counted.
  bool empty() const noexcept { return count_ == 0; }

  /// Number of durations above `trackable_max`.
  std::uint64_t overflow_count() const noexcept { return counts_.back(); }

  /// The shortest duration, exact; zero if empty.
  std::chrono::nanoseconds min() const noexcept {
    return empty() ? std::chrono::nanoseconds(0) : min_;
  }

  /// The longest duration, exact even in the overflow; zero if empty.
  std::chrono::nanoseconds max() const noexcept { return max_; }

  /// Computed from the middles of the buckets, so off by less than 0.05 %. Zero
  /// if empty. Overflowed durations count as `trackable_max`, so both are too
  /// low then.
  fractional_nanoseconds mean() const noexcept;
  /// Standard deviation of all durations, not of a sample.
  fractional_nanoseconds standard_deviation() const noexcept;

  /// The shortest duration that `percentile` of 100 durations do not exceed;
  /// zero if empty. `percentile` is from 0 to 100.
  ///
  /// Returns the upper end of the bucket, which may exceed `max()` by less than
  /// 0.1 %; for a `percentile` of 0, the lower end. HdrHistogram has the same
  /// convention (`getValueAtPercentile`). In the overflow it is `max()`.
  std::chrono::nanoseconds value_at(double percentile) const noexcept;

  /// Number of durations up to `value`, or in the same bucket. Overflowed
  /// durations count only if `value` is at least `max()`.
  std::uint64_t
  count_at_or_below(std::chrono::nanoseconds value) const noexcept;

  /// The distribution by percentile, for charts that zoom in on 100: the same
  /// number of rows from 0 to 50, from 50 to 75, from 75 to 87.5 and so on, and
  /// one row for 100. Empty if nothing was recorded.
  ///
  /// `ticks_per_half_distance` is at least 1. The steps follow HdrHistogram's
  /// `PercentileIterator`.
  std::vector<percentile_row> percentiles(unsigned ticks_per_half_distance
                                          = 5) const;

  /// All non-empty buckets, shortest first.
  std::vector<bucket> buckets() const;

  friend bool operator==(const histogram&, const histogram&) = default;

private:
  static constexpr std::size_t cell_of(std::chrono::nanoseconds value) {
    return std::min(cells::index_of(value), overflow_cell);
  }

  void add(std::chrono::nanoseconds value, std::uint64_t count) noexcept {
    const auto time = std::max(value, std::chrono::nanoseconds(0));
    counts_[cell_of(time)] += count;
    count_ += count;
    min_ = std::min(min_, time);
    max_ = std::max(max_, time);
  }

  std::chrono::nanoseconds high_of(std::size_t cell) const noexcept;

  // Value in a mean of one duration in the cell.
  static fractional_nanoseconds middle_of(std::size_t cell) noexcept;

  template <class Visitor>
  void each_used(Visitor&& visit) const;

  std::vector<std::uint64_t> counts_;
  std::uint64_t count_ = 0;
  // Swapped when empty, so that the first value replaces both.
  std::chrono::nanoseconds min_ = std::chrono::nanoseconds::max();
  std::chrono::nanoseconds max_{0};
};

/// The percentile distribution as `.hgrm` text for HdrHistogram's plotters.
/// Values are divided by `unit`: `1ms` gives milliseconds.
///
/// Columns, footer and the last row, which has no inverse, follow
/// `AbstractHistogram.outputPercentileDistribution` of HdrHistogram 2 (Java).
std::string to_hgrm(const histogram& from,
                    std::chrono::nanoseconds unit,
                    unsigned ticks_per_half_distance = 5);

/// The histogram as JSON, in nanoseconds: `{"count", "overflow", "min", "max":
/// integer, "mean": number, "p50", "p90", "p95", "p99", "p99_9", "p99_99":
/// integer, "buckets": [[low, count], …]}`. The buckets include the overflow;
/// empty ones are left out.
json to_json(const histogram& from);

/// Reads the output of `to_json`; the result equals the original.
///
/// Mean and percentiles follow from the buckets and are not read. Fails with
/// `errc::invalid_argument` if another field is missing or does not fit the
/// buckets, or if a bucket has other bounds than ours.
result<histogram> histogram_from_json(const json& data);

} // namespace troupe::load
