#include "troupe/telemetry/records/histogram.hpp"

#include <algorithm>
#include <utility>

namespace troupe::telemetry {

histogram_table::histogram_table(std::vector<instrument> instruments)
  : instruments_(std::move(instruments)),
    points_(instruments_.size()) {}

void histogram_table::record(std::size_t index, double value, attributes of) {
  const auto& bounds = instruments_.at(index).bounds;
  const auto bucket = static_cast<std::size_t>(
    std::ranges::lower_bound(bounds, value) - bounds.begin());
  const std::lock_guard guard(mutex_);
  auto& points = points_[index];
  if (points.size() >= points_max && !points.contains(of))
    of = {attribute("otel.metric.overflow", true)};
  auto& point = points[of];
  if (point.count == 0) {
    point.attributes = std::move(of);
    point.buckets.resize(bounds.size() + 1);
    point.min = value;
    point.max = value;
  }
  ++point.count;
  point.sum += value;
  point.min = std::min(point.min, value);
  point.max = std::max(point.max, value);
  ++point.buckets[bucket];
}

std::vector<histogram> histogram_table::all() const {
  std::vector<histogram> made;
  const std::lock_guard guard(mutex_);
  for (std::size_t index = 0; index < instruments_.size(); ++index) {
    if (points_[index].empty())
      continue;
    auto& added = made.emplace_back();
    added.of = instruments_[index];
    for (const auto& [of, point] : points_[index])
      added.points.push_back(point);
  }
  return made;
}

} // namespace troupe::telemetry
