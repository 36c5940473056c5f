// How long the calls of a load test took, to three significant digits, in
// memory that never grows.
//
// The buckets are log-linear, as in HdrHistogram: each power of two is cut into
// 1024 of equal width. All that are not empty lie between the bucket of `min()`
// and the bucket of `max()`. Nothing is corrected for coordinated omission: the
// load is an open model, so a duration runs from the start that was intended.

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

/// A duration that was computed and lies between two nanoseconds.
using fractional_nanoseconds = std::chrono::duration<double, std::nano>;

namespace detail {

// Where a duration counts. Those below `2 * per_octave` have buckets 1 ns wide;
// from there on the width doubles with each power of two.
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

/// Counts of durations.
///
/// A duration of up to `trackable_max` is off by less than 0.1 %, one below
/// 2048 ns not at all; a longer one counts as overflow. 219 kB, allocated when
/// it is made. For one thread at a time: each thread that records has its own,
/// and they are merged. A moved-from histogram can only be assigned to or
/// destroyed.
class histogram {
private:
  using cells = detail::log_linear;

  // The last cell takes all that is longer than the bucket of 60 s.
  static constexpr std::size_t overflow_cell
    = cells::index_of(std::chrono::seconds(60)) + 1;

public:
  /// The longest duration that does not overflow: 60 s and what shares their
  /// bucket, up to 60.029 s.
  static constexpr std::chrono::nanoseconds trackable_max
    = cells::low_of(overflow_cell) - std::chrono::nanoseconds(1);

  /// The layout as HdrHistogram counts it: buckets that double in width, each
  /// of so many sub-buckets, of which all but the first use the upper half.
  static constexpr std::size_t bucket_count
    = (overflow_cell - 1) / cells::per_octave;
  static constexpr std::size_t sub_bucket_count = 2 * cells::per_octave;

  /// Durations that are the same to the histogram, from `low` to `high`, both
  /// included, and how many of them it has. The bucket of the overflow ends at
  /// `max()`.
  struct bucket {
    std::chrono::nanoseconds low{0};
    std::chrono::nanoseconds high{0};
    std::uint64_t count = 0;

    friend bool operator==(const bucket&, const bucket&) = default;
  };

  /// One row of a percentile distribution: `count` durations, at least
  /// `percentile` of 100, are `value` or less.
  struct percentile_row {
    double percentile = 0;
    std::chrono::nanoseconds value{0};
    std::uint64_t count = 0;

    friend bool operator==(const percentile_row&, const percentile_row&)
      = default;
  };

  histogram() : counts_(overflow_cell + 1) {}

  /// Counts `value`. One below zero counts as zero: a call that started ahead
  /// of its time waited for nothing.
  void record(std::chrono::nanoseconds value) noexcept { add(value, 1); }

  /// Counts `value` as often as `count` says, which may be not at all. All
  /// counts of a histogram add up to less than 2^64.
  void record(std::chrono::nanoseconds value, std::uint64_t count) noexcept {
    if (count > 0)
      add(value, count);
  }

  /// Adds what `other` recorded. Afterwards it is as if all had been recorded
  /// here.
  void merge(const histogram& other) noexcept;

  /// Takes away what `earlier`, an older copy, had recorded: what is left came
  /// since then.
  ///
  /// `min()` and `max()` are as exact as the buckets from now on, `max()` still
  /// exact if it was reached since. Fails with `errc::invalid_argument` if
  /// `earlier` has a bucket that counts more; nothing changes then.
  result<void> subtract(const histogram& earlier);

  void clear() noexcept;

  /// All that was recorded, the overflow included.
  std::uint64_t count() const noexcept { return count_; }

  bool empty() const noexcept { return count_ == 0; }

  /// Those longer than `trackable_max`.
  std::uint64_t overflow_count() const noexcept { return counts_.back(); }

  /// The shortest, exact; zero if empty.
  std::chrono::nanoseconds min() const noexcept {
    return empty() ? std::chrono::nanoseconds(0) : min_;
  }

  /// The longest, exact even if it overflowed; zero if empty.
  std::chrono::nanoseconds max() const noexcept { return max_; }

  /// From the middles of the buckets, so off by less than 0.05 %; zero if
  /// empty. What overflowed counts as `trackable_max`, so both are too low
  /// then.
  fractional_nanoseconds mean() const noexcept;
  fractional_nanoseconds standard_deviation() const noexcept;

  /// The least duration that `percentile` of 100 of those recorded do not
  /// exceed; zero if empty. `percentile` is from 0 to 100.
  ///
  /// It is the highest of its bucket, so it may exceed `max()`, by less than
  /// 0.1 %; for a `percentile` of 0 it is the lowest. HdrHistogram has the same
  /// convention, `getValueAtPercentile`. In the overflow it is `max()`.
  std::chrono::nanoseconds value_at(double percentile) const noexcept;

  /// How many lasted `value` or less, or are the same to the histogram. Those
  /// that overflowed do only if `value` is at least `max()`.
  std::uint64_t
  count_at_or_below(std::chrono::nanoseconds value) const noexcept;

  /// The distribution by percentile, for charts that zoom in on 100: as many
  /// rows from 0 to 50 as from 50 to 75, from 75 to 87.5 and so on, and one for
  /// 100 at the end. Nothing if empty.
  ///
  /// `ticks_per_half_distance` is at least 1. The steps are those of
  /// HdrHistogram's `PercentileIterator`.
  std::vector<percentile_row> percentiles(unsigned ticks_per_half_distance
                                          = 5) const;

  /// Those that are not empty, shortest first.
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

  // What one of the cell counts as in a mean.
  static fractional_nanoseconds middle_of(std::size_t cell) noexcept;

  template <class Visitor>
  void each_used(Visitor&& visit) const;

  std::vector<std::uint64_t> counts_;
  std::uint64_t count_ = 0;
  // The other way round when empty, so that every value is less and more.
  std::chrono::nanoseconds min_ = std::chrono::nanoseconds::max();
  std::chrono::nanoseconds max_{0};
};

/// The percentile distribution as `.hgrm` text, which the plotters of
/// HdrHistogram read. Values are divided by `unit`: `1ms` gives milliseconds.
///
/// Columns, the last row without an inverse and the footer follow
/// `AbstractHistogram.outputPercentileDistribution` of HdrHistogram 2 (Java).
std::string to_hgrm(const histogram& from,
                    std::chrono::nanoseconds unit,
                    unsigned ticks_per_half_distance = 5);

/// All of it, in nanoseconds: `{"count", "overflow", "min", "max": integer,
/// "mean": number, "p50", "p90", "p95", "p99", "p99_9", "p99_99": integer,
/// "buckets": [[low, count], …]}`, where the buckets include the overflow and
/// leave out the empty ones.
json to_json(const histogram& from);

/// Reads what `to_json` made; the two are equal.
///
/// The mean and the percentiles are for other readers: they follow from the
/// buckets and are not read. Fails with `errc::invalid_argument` if one of the
/// other fields is missing or does not fit the buckets, or if a bucket is not
/// one of ours.
result<histogram> histogram_from_json(const json& data);

} // namespace troupe::load
