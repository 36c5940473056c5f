#include "troupe/load/histogram.hpp"

#include <fmt/format.h>

#include <array>
#include <cassert>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

namespace troupe::load {

namespace {

using std::chrono::nanoseconds;

constexpr auto count_max = std::numeric_limits<std::uint64_t>::max();

// The number of values, of `count`, that make up `percentile`: rounded up like
// in HdrHistogram, after one step down, so that 99.9 % of 1000 is 999.
std::uint64_t rank_of(double percentile, std::uint64_t count) {
  const auto all = static_cast<double>(count);
  const double rank = std::ceil(std::nextafter(percentile, 0.0) * all / 100);
  if (percentile >= 100 || rank >= all)
    return count;
  return std::max<std::uint64_t>(static_cast<std::uint64_t>(rank), 1);
}

// The next tick after `percentile`. Ticks are equally spaced until the distance
// to 100 has halved, then at half the spacing. 100 when the precision of
// doubles is exhausted.
double tick_after(double percentile, unsigned ticks_per_half_distance) {
  const int halvings = std::ilogb(100 / (100 - percentile));
  const double ticks = std::ldexp(ticks_per_half_distance, halvings + 1);
  const double next = percentile + 100 / ticks;
  return next > percentile && next < 100 ? next : 100;
}

} // namespace

// -- recording ----------------------------------------------------------------

void histogram::merge(const histogram& other) noexcept {
  assert(other.count_ <= count_max - count_);
  if (other.empty())
    return;
  const auto last = cell_of(other.max_);
  for (auto cell = cell_of(other.min_); cell <= last; ++cell)
    counts_[cell] += other.counts_[cell];
  count_ += other.count_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
}

result<void> histogram::subtract(const histogram& earlier) {
  if (earlier.empty())
    return {};
  const auto first = cell_of(earlier.min_);
  const auto last = cell_of(earlier.max_);
  for (auto cell = first; cell <= last; ++cell)
    if (counts_[cell] < earlier.counts_[cell])
      return error(errc::invalid_argument,
                   fmt::format("subtract a histogram that counts {} from {} ns "
                               "on from one that counts {}",
                               earlier.counts_[cell],
                               cells::low_of(cell).count(),
                               counts_[cell]));
  if (count_ == earlier.count_) {
    clear();
    return {};
  }
  for (auto cell = first; cell <= last; ++cell)
    counts_[cell] -= earlier.counts_[cell];
  count_ -= earlier.count_;
  auto shortest = cell_of(min_);
  while (counts_[shortest] == 0)
    ++shortest;
  auto longest = cell_of(max_);
  while (counts_[longest] == 0)
    --longest;
  min_ = std::max(min_, cells::low_of(shortest));
  max_ = std::min(max_, high_of(longest));
  // One duration has one length.
  if (count_ == 1)
    min_ = max_;
  return {};
}

void histogram::clear() noexcept {
  std::ranges::fill(counts_, std::uint64_t{0});
  count_ = 0;
  min_ = nanoseconds::max();
  max_ = nanoseconds(0);
}

// -- reading ------------------------------------------------------------------

nanoseconds histogram::high_of(std::size_t cell) const noexcept {
  return cell == overflow_cell ? max_
                               : cells::low_of(cell + 1) - nanoseconds(1);
}

fractional_nanoseconds histogram::middle_of(std::size_t cell) noexcept {
  if (cell == overflow_cell)
    return trackable_max;
  const auto low = fractional_nanoseconds(cells::low_of(cell));
  const auto next = fractional_nanoseconds(cells::low_of(cell + 1));
  return (low + next - fractional_nanoseconds(1)) / 2;
}

// Calls `visit(cell, count)` for those that are not empty, shortest first.
template <class Visitor>
void histogram::each_used(Visitor&& visit) const {
  if (empty())
    return;
  const auto last = cell_of(max_);
  for (auto cell = cell_of(min_); cell <= last; ++cell)
    if (counts_[cell] > 0)
      visit(cell, counts_[cell]);
}

fractional_nanoseconds histogram::mean() const noexcept {
  if (empty())
    return {};
  fractional_nanoseconds total{0};
  each_used([&total](std::size_t cell, std::uint64_t count) {
    total += middle_of(cell) * static_cast<double>(count);
  });
  return total / static_cast<double>(count_);
}

fractional_nanoseconds histogram::standard_deviation() const noexcept {
  if (empty())
    return {};
  const auto centre = mean();
  double total = 0;
  each_used([centre, &total](std::size_t cell, std::uint64_t count) {
    const double distance = (middle_of(cell) - centre).count();
    total += distance * distance * static_cast<double>(count);
  });
  return fractional_nanoseconds(std::sqrt(total / static_cast<double>(count_)));
}

nanoseconds histogram::value_at(double percentile) const noexcept {
  assert(percentile >= 0);
  assert(percentile <= 100);
  if (empty())
    return nanoseconds(0);
  const auto rank = rank_of(percentile, count_);
  auto cell = cell_of(min_);
  for (auto reached = counts_[cell]; reached < rank; reached += counts_[cell])
    ++cell;
  return percentile > 0 ? high_of(cell) : cells::low_of(cell);
}

std::uint64_t histogram::count_at_or_below(nanoseconds value) const noexcept {
  if (value < nanoseconds(0))
    return 0;
  if (value >= max_)
    return count_;
  std::uint64_t reached = 0;
  const auto last = std::min(cell_of(value), overflow_cell - 1);
  for (auto cell = cell_of(min()); cell <= last; ++cell)
    reached += counts_[cell];
  return reached;
}

std::vector<histogram::percentile_row>
histogram::percentiles(unsigned ticks_per_half_distance) const {
  assert(ticks_per_half_distance > 0);
  std::vector<percentile_row> rows;
  double tick = 0;
  percentile_row row;
  each_used([&](std::size_t cell, std::uint64_t count) {
    row.value = high_of(cell);
    row.count += count;
    const double reached
      = 100 * static_cast<double>(row.count) / static_cast<double>(count_);
    while (tick <= reached && tick < 100) {
      row.percentile = tick;
      rows.push_back(row);
      tick = tick_after(tick, ticks_per_half_distance);
      // The longest have one tick and the row for 100, not all ticks between.
      if (row.count == count_)
        break;
    }
  });
  if (!empty()) {
    row.percentile = 100;
    rows.push_back(row);
  }
  return rows;
}

std::vector<histogram::bucket> histogram::buckets() const {
  std::vector<bucket> used;
  each_used([this, &used](std::size_t cell, std::uint64_t count) {
    used.push_back({cells::low_of(cell), high_of(cell), count});
  });
  return used;
}

// -- .hgrm --------------------------------------------------------------------

// Digits are as the reference has them for three significant ones. It leaves
// the inverse out of the last row, where wrk2 and HdrHistogram_c print `inf`
// under a header with other gaps; plotters skip the row either way.
std::string to_hgrm(const histogram& from,
                    nanoseconds unit,
                    unsigned ticks_per_half_distance) {
  assert(unit > nanoseconds(0));
  const auto scaled = [unit](fractional_nanoseconds value) {
    return value / fractional_nanoseconds(unit);
  };
  std::string text = fmt::format("{:>12} {:>14} {:>10} {:>14}\n\n",
                                 "Value",
                                 "Percentile",
                                 "TotalCount",
                                 "1/(1-Percentile)");
  for (const auto& row : from.percentiles(ticks_per_half_distance)) {
    const double share = row.percentile / 100;
    text += fmt::format(
      "{:12.3f} {:.12f} {:10}", scaled(row.value), share, row.count);
    text += row.percentile < 100 ? fmt::format(" {:14.2f}\n", 1 / (1 - share))
                                 : "\n";
  }
  text += fmt::format("#[Mean    = {:12.3f}, StdDeviation   = {:12.3f}]\n",
                      scaled(from.mean()),
                      scaled(from.standard_deviation()));
  // Not `max()`, which need not be a value of the rows.
  text += fmt::format("#[Max     = {:12.3f}, Total count    = {:12}]\n",
                      scaled(from.value_at(100)),
                      from.count());
  text += fmt::format("#[Buckets = {:12}, SubBuckets     = {:12}]\n",
                      histogram::bucket_count,
                      histogram::sub_bucket_count);
  return text;
}

// -- JSON ---------------------------------------------------------------------

namespace {

constexpr std::array<std::pair<std::string_view, double>, 6> stored_percentiles
  = {{{"p50", 50},
      {"p90", 90},
      {"p95", 95},
      {"p99", 99},
      {"p99_9", 99.9},
      {"p99_99", 99.99}}};

json integer(nanoseconds value) {
  return static_cast<std::uint64_t>(value.count());
}

std::optional<std::uint64_t> natural_of(const json& number) {
  if (number.is_number_unsigned())
    return number.get<std::uint64_t>();
  if (number.is_number_integer() && number.get<std::int64_t>() >= 0)
    return number.get<std::uint64_t>();
  return std::nullopt;
}

std::optional<nanoseconds> duration_of(const json& number) {
  const auto count = natural_of(number);
  if (!count || *count > static_cast<std::uint64_t>(nanoseconds::max().count()))
    return std::nullopt;
  return nanoseconds(*count);
}

error damaged(std::string_view why) {
  return {errc::invalid_argument, fmt::format("read a histogram: {}", why)};
}

} // namespace

json to_json(const histogram& from) {
  json data = {{"count", from.count()},
               {"overflow", from.overflow_count()},
               {"min", integer(from.min())},
               {"max", integer(from.max())},
               {"mean", from.mean().count()}};
  for (const auto& [name, percentile] : stored_percentiles)
    data[std::string(name)]
      = integer(std::min(from.value_at(percentile), from.max()));
  auto& buckets = data["buckets"] = json::array();
  for (const auto& bucket : from.buckets())
    buckets.push_back(json::array({integer(bucket.low), bucket.count}));
  return data;
}

// Records each bucket again, then asks whether that is written the same: so a
// bucket out of order, of another width or not between `min` and `max` needs no
// rule of its own.
result<histogram> histogram_from_json(const json& data) {
  static constexpr std::array read
    = {"count", "overflow", "min", "max", "buckets"};
  if (!data.is_object())
    return damaged("it is not an object");
  for (const auto* name : read)
    if (!data.contains(name))
      return damaged(fmt::format("'{}' is missing", name));
  const auto min = duration_of(data["min"]);
  const auto max = duration_of(data["max"]);
  if (!min || !max || *min > *max)
    return damaged("'min' and 'max' are not durations in order");
  const auto& buckets = data["buckets"];
  if (!buckets.is_array())
    return damaged("'buckets' is not a list");
  histogram made;
  for (std::size_t index = 0; index < buckets.size(); ++index) {
    const auto& bucket = buckets[index];
    if (!bucket.is_array() || bucket.size() != 2)
      return damaged(fmt::format("bucket {} is not a pair", index));
    const auto low = duration_of(bucket[0]);
    const auto count = natural_of(bucket[1]);
    if (!low || !count || *count == 0 || *count > count_max - made.count())
      return damaged(
        fmt::format("bucket {} is not a duration with a count", index));
    // The last has the longest, which need not be its lowest.
    const bool last = index + 1 == buckets.size();
    made.record(std::clamp(*low, *min, *max), last ? *count - 1 : *count);
    if (last)
      made.record(*max);
  }
  const auto written = to_json(made);
  for (const auto* name : read)
    if (!equal(written[name], data[name]))
      return damaged(fmt::format("'{}' does not fit the rest", name));
  return made;
}

} // namespace troupe::load
