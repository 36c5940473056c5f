// Histograms of durations and counts, by attributes, summed up since the start
// of the program.

#pragma once

#include "troupe/telemetry/records/span.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace troupe::telemetry {

/// Name, unit and buckets of a histogram.
struct instrument {
  std::string name;
  std::string description;
  /// `s`, `{token}` or `{call}`.
  std::string unit;
  /// Upper bounds of the buckets, ascending. A value above the last one counts
  /// in one more bucket.
  std::vector<double> bounds;
};

/// The values with the same attributes.
struct histogram_point {
  telemetry::attributes attributes;
  std::uint64_t count = 0;
  double sum = 0;
  double min = 0;
  double max = 0;
  /// One more than there are bounds.
  std::vector<std::uint64_t> buckets;
};

/// A histogram as it is sent.
struct histogram {
  instrument of;
  std::vector<histogram_point> points;
};

/// Counts without attributes, from many threads. Threads write to different
/// cache lines most of the time, and none waits. Thread-safe.
class count_point {
public:
  /// `bounds` are those of the instrument.
  explicit count_point(std::size_t bounds);

  void record(std::size_t bucket, std::uint64_t value) noexcept;

  /// The sum over all threads; its count is 0 if there is no value. Values that
  /// are recorded meanwhile may be in a part of the figures only.
  histogram_point total() const;

private:
  struct alignas(64) shard {
    std::vector<std::atomic<std::uint64_t>> buckets;
    std::atomic<std::uint64_t> sum{0};
    std::atomic<std::uint64_t> min{std::numeric_limits<std::uint64_t>::max()};
    std::atomic<std::uint64_t> max{0};
  };

  std::array<shard, 8> shards_;
};

/// Collects the values of several instruments. Thread-safe.
class histogram_table {
public:
  /// Limit of combinations of attributes of one instrument. Values of further
  /// combinations count in one point, with `otel.metric.overflow`.
  static constexpr std::size_t points_max = 2'000;

  explicit histogram_table(std::vector<instrument> instruments);

  /// Adds a value to the instrument with this index. Equal attributes are given
  /// in equal order.
  void record(std::size_t index, double value, attributes of);

  /// Adds a count without attributes. An instrument has either counts or values
  /// with attributes. Much cheaper than `record`.
  void count(std::size_t index, std::uint64_t value);

  /// Returns all histograms that have a value.
  std::vector<histogram> all() const;

private:
  const std::vector<instrument> instruments_;
  std::vector<std::unique_ptr<count_point>> counts_; // By instrument.
  mutable std::mutex mutex_;
  std::vector<std::map<attributes, histogram_point>> points_; // By instrument.
};

} // namespace troupe::telemetry
