#include "troupe/telemetry/records/histogram.hpp"

#include <algorithm>
#include <utility>

namespace troupe::telemetry {

namespace {

constexpr auto relaxed = std::memory_order_relaxed;

std::size_t bucket_of(const instrument& of, double value) {
  return static_cast<std::size_t>(std::ranges::lower_bound(of.bounds, value)
                                  - of.bounds.begin());
}

// A number of the calling thread, counted up.
std::size_t number_of_thread() noexcept {
  static std::atomic<std::size_t> threads{0};
  thread_local const std::size_t number = threads.fetch_add(1, relaxed);
  return number;
}

} // namespace

// -- counts -------------------------------------------------------------------

count_point::count_point(std::size_t bounds) {
  for (auto& each : shards_)
    each.buckets = std::vector<std::atomic<std::uint64_t>>(bounds + 1);
}

void count_point::record(std::size_t bucket, std::uint64_t value) noexcept {
  auto& own = shards_[number_of_thread() % shards_.size()];
  own.buckets[bucket].fetch_add(1, relaxed);
  own.sum.fetch_add(value, relaxed);
  for (auto now = own.min.load(relaxed);
       value < now && !own.min.compare_exchange_weak(now, value, relaxed);) {
  }
  for (auto now = own.max.load(relaxed);
       value > now && !own.max.compare_exchange_weak(now, value, relaxed);) {
  }
}

histogram_point count_point::total() const {
  histogram_point made;
  made.buckets.resize(shards_.front().buckets.size());
  auto min = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t max = 0;
  for (const auto& each : shards_) {
    for (std::size_t index = 0; index < made.buckets.size(); ++index)
      made.buckets[index] += each.buckets[index].load(relaxed);
    made.sum += static_cast<double>(each.sum.load(relaxed));
    min = std::min(min, each.min.load(relaxed));
    max = std::max(max, each.max.load(relaxed));
  }
  for (const auto each : made.buckets)
    made.count += each;
  if (min <= max) {
    made.min = static_cast<double>(min);
    made.max = static_cast<double>(max);
  }
  return made;
}

// -- the table ----------------------------------------------------------------

histogram_table::histogram_table(std::vector<instrument> instruments)
  : instruments_(std::move(instruments)),
    points_(instruments_.size()) {
  for (const auto& each : instruments_)
    counts_.push_back(std::make_unique<count_point>(each.bounds.size()));
}

void histogram_table::count(std::size_t index, std::uint64_t value) {
  counts_.at(index)->record(
    bucket_of(instruments_[index], static_cast<double>(value)), value);
}

void histogram_table::record(std::size_t index, double value, attributes of) {
  const auto& bounds = instruments_.at(index).bounds;
  const auto bucket = bucket_of(instruments_[index], value);
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
    auto counted = counts_[index]->total();
    if (points_[index].empty() && counted.count == 0)
      continue;
    auto& added = made.emplace_back();
    added.of = instruments_[index];
    for (const auto& [of, point] : points_[index])
      added.points.push_back(point);
    if (counted.count > 0)
      added.points.push_back(std::move(counted));
  }
  return made;
}

} // namespace troupe::telemetry
