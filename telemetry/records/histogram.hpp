// Histograms of durations and counts, by attributes, summed up since the start
// of the program.

#pragma once

#include "troupe/telemetry/records/span.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
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

  /// Returns all histograms that have a value.
  std::vector<histogram> all() const;

private:
  const std::vector<instrument> instruments_;
  mutable std::mutex mutex_;
  std::vector<std::map<attributes, histogram_point>> points_; // By instrument.
};

} // namespace troupe::telemetry
