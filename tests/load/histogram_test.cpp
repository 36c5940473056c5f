// The latency histogram: its precision, sums and differences of two, and its
// text forms.

#include "troupe/load/histogram.hpp"

#include "../outcome.hpp"
#include "../random.hpp"
#include "../replaced_allocation.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::load;
using namespace troupe::testing;
using namespace std::chrono_literals;
using std::chrono::nanoseconds;
namespace data = boost::unit_test::data;

BOOST_TEST_DONT_PRINT_LOG_VALUE(histogram)
BOOST_TEST_DONT_PRINT_LOG_VALUE(histogram::bucket)

// -- allocations ----

namespace {

// Allocations of this thread.
thread_local std::size_t allocations = 0;
thread_local std::size_t bytes_allocated = 0;

} // namespace

bool troupe::testing::on_allocation(std::size_t size) noexcept {
  ++allocations;
  bytes_allocated += size;
  return true;
}

// -- durations ----

namespace {

constexpr auto seeds = {1, 2, 3, 4, 5};

// Compares as a number, whose value is shown when a check fails.
auto ns(nanoseconds value) {
  return value.count();
}

// Draws a duration between the two; each order of magnitude is equally likely.
nanoseconds
log_uniform(random_source& random, nanoseconds low, nanoseconds high) {
  constexpr std::size_t steps = std::size_t{1} << 40;
  const double share
    = static_cast<double>(random.below(steps)) / static_cast<double>(steps);
  const double ratio
    = static_cast<double>(high.count()) / static_cast<double>(low.count());
  return nanoseconds(
    std::llround(static_cast<double>(low.count()) * std::pow(ratio, share)));
}

// Draws any duration; sometimes zero, a limit, or one above every limit.
nanoseconds any_duration(random_source& random) {
  switch (random.below(10)) {
  case 0:
    return nanoseconds(random.below(2100));
  case 1:
    return histogram::trackable_max + nanoseconds(random.below(3)) - 1ns;
  case 2:
    return log_uniform(random, 60s, nanoseconds::max() / 2);
  default:
    return log_uniform(random, 100ns, 60s);
  }
}

std::vector<nanoseconds> many(random_source& random, std::size_t count) {
  std::vector<nanoseconds> values(count);
  for (auto& value : values)
    value = any_duration(random);
  return values;
}

histogram of(const std::vector<nanoseconds>& values) {
  histogram made;
  for (const auto value : values)
    made.record(value);
  return made;
}

// Returns the lower end of the bucket of `value`.
nanoseconds lowest_of(nanoseconds value) {
  return of({value}).value_at(0);
}

// Returns the least value that at least `millionths` per million of all values
// do not exceed.
nanoseconds reference_at(const std::vector<nanoseconds>& sorted,
                         std::size_t millionths) {
  const auto rank = (millionths * sorted.size() + 999'999) / 1'000'000;
  return sorted[std::max<std::size_t>(rank, 1) - 1];
}

histogram read_back(
  const histogram& from,
  const std::function<void(json&)>& change = [](json&) {}) {
  auto text = to_json(from);
  change(text);
  return histogram_from_json(parse_json(to_text(text)).value()).value();
}

} // namespace

BOOST_AUTO_TEST_SUITE(histograms)

// -- precision ----

BOOST_DATA_TEST_CASE(a_value_is_off_by_less_than_a_thousandth,
                     data::make(seeds),
                     seed) {
  random_source random(static_cast<std::uint64_t>(seed));
  for (int round = 0; round < 2000; ++round) {
    const auto value = log_uniform(random, 100ns, 60s);
    const auto bucket = of({value}).buckets().at(0);
    BOOST_REQUIRE_LE(ns(bucket.low), ns(value));
    BOOST_REQUIRE_GE(ns(bucket.high), ns(value));
    BOOST_REQUIRE_LT(1000 * ns(bucket.high - bucket.low), ns(value));
  }
}

BOOST_AUTO_TEST_CASE(below_2048_ns_each_value_has_its_own_bucket) {
  histogram all;
  for (int value = 0; value < 2048; ++value)
    all.record(nanoseconds(value));
  const auto buckets = all.buckets();
  BOOST_TEST(buckets.size() == 2048U);
  for (int value = 0; value < 2048; ++value)
    BOOST_TEST(
      (buckets[std::size_t(value)]
       == histogram::bucket{nanoseconds(value), nanoseconds(value), 1}));
}

BOOST_AUTO_TEST_CASE(buckets_follow_each_other_without_gap_up_to_60_s) {
  auto next = 0ns;
  histogram one;
  while (next <= histogram::trackable_max) {
    one.clear();
    one.record(next);
    const auto bucket = one.buckets().at(0);
    BOOST_REQUIRE_EQUAL(ns(bucket.low), ns(next));
    next = bucket.high + 1ns;
  }
  BOOST_TEST(ns(next) == ns(histogram::trackable_max + 1ns));
  BOOST_TEST(ns(next) >= ns(60s));
}

BOOST_DATA_TEST_CASE(percentiles_are_those_of_the_sorted_values,
                     data::make(seeds),
                     seed) {
  random_source random(static_cast<std::uint64_t>(seed));
  for (const std::size_t size : {1U, 2U, 3U, 10U, 999U, 1'000U, 20'000U}) {
    std::vector<nanoseconds> values(size);
    for (auto& value : values)
      value = log_uniform(random, 100ns, 60s);
    const auto all = of(values);
    std::ranges::sort(values);
    for (const std::size_t millionths : {1U,
                                         100'000U,
                                         250'000U,
                                         500'000U,
                                         900'000U,
                                         990'000U,
                                         999'000U,
                                         999'900U,
                                         999'999U,
                                         1'000'000U}) {
      const auto exact = reference_at(values, millionths);
      const auto told = all.value_at(static_cast<double>(millionths) / 10'000);
      BOOST_TEST(ns(told) >= ns(exact));
      BOOST_TEST(1000 * ns(told - exact) < ns(exact));
    }
  }
}

BOOST_DATA_TEST_CASE(mean_and_deviation_are_those_of_the_values,
                     data::make(seeds),
                     seed) {
  random_source random(static_cast<std::uint64_t>(seed));
  std::vector<nanoseconds> values(5000);
  double total = 0;
  double squares = 0;
  for (auto& value : values) {
    value = log_uniform(random, 100ns, 60s);
    total += static_cast<double>(value.count());
    squares += std::pow(static_cast<double>(value.count()), 2);
  }
  const auto all = of(values);
  const double mean = total / 5000;
  const double deviation = std::sqrt(squares / 5000 - mean * mean);
  BOOST_TEST(std::abs(all.mean().count() - mean) < 0.0005 * mean);
  BOOST_TEST(std::abs(all.standard_deviation().count() - deviation)
             < 0.001 * deviation);
}

BOOST_DATA_TEST_CASE(min_and_max_are_exact, data::make(seeds), seed) {
  random_source random(static_cast<std::uint64_t>(seed));
  const auto values = many(random, 1 + random.below(50));
  const auto all = of(values);
  BOOST_TEST(ns(all.min()) == ns(std::ranges::min(values)));
  BOOST_TEST(ns(all.max()) == ns(std::ranges::max(values)));
}

BOOST_DATA_TEST_CASE(count_at_or_below_counts_whole_buckets,
                     data::make(seeds),
                     seed) {
  random_source random(static_cast<std::uint64_t>(seed));
  const auto values = many(random, 500);
  const auto all = of(values);
  for (const auto value : many(random, 500)) {
    const auto high = of({value}).value_at(100);
    const auto exact = std::ranges::count_if(
      values, [high](nanoseconds other) { return other <= high; });
    if (value <= histogram::trackable_max || value >= all.max())
      BOOST_TEST(all.count_at_or_below(value)
                 == static_cast<std::size_t>(exact));
    else
      BOOST_TEST(all.count_at_or_below(value)
                 == all.count() - all.overflow_count());
  }
  BOOST_TEST(all.count_at_or_below(-1ns) == 0U);
}

// -- ends ----

BOOST_AUTO_TEST_CASE(the_ends_are_the_lowest_and_the_highest_of_their_bucket) {
  const auto all = of({10'001ns, 20'005ns, 30'001ns});
  BOOST_TEST(ns(all.value_at(0)) == 10'000);
  BOOST_TEST(ns(all.value_at(50)) == 20'015);
  BOOST_TEST(ns(all.value_at(100)) == 30'015);
}

BOOST_AUTO_TEST_CASE(a_percentile_that_is_a_count_is_reached_by_that_count) {
  histogram all;
  for (int value = 1; value <= 1000; ++value)
    all.record(nanoseconds(value));
  for (int value = 1; value <= 1000; ++value)
    BOOST_TEST(ns(all.value_at(value / 10.0)) == value);
}

BOOST_AUTO_TEST_CASE(an_empty_histogram_is_zero_everywhere) {
  const histogram none;
  BOOST_TEST(none.empty());
  BOOST_TEST(none.count() == 0U);
  BOOST_TEST(none.overflow_count() == 0U);
  BOOST_TEST(ns(none.min()) == 0);
  BOOST_TEST(ns(none.max()) == 0);
  BOOST_TEST(none.mean().count() == 0);
  BOOST_TEST(none.standard_deviation().count() == 0);
  for (const double percentile : {0.0, 50.0, 100.0})
    BOOST_TEST(ns(none.value_at(percentile)) == 0);
  BOOST_TEST(none.count_at_or_below(60s) == 0U);
  BOOST_TEST(none.buckets().empty());
  BOOST_TEST(none.percentiles().empty());
}

BOOST_AUTO_TEST_CASE(a_duration_below_zero_counts_as_zero) {
  const auto all = of({-5ns, nanoseconds::min()});
  BOOST_TEST((all == of({0ns, 0ns})));
}

BOOST_AUTO_TEST_CASE(what_is_too_long_is_counted_and_its_maximum_kept) {
  const auto all
    = of({1s, histogram::trackable_max, histogram::trackable_max + 1ns, 75s});
  BOOST_TEST(all.count() == 4U);
  BOOST_TEST(all.overflow_count() == 2U);
  BOOST_TEST(ns(all.max()) == ns(75s));
  BOOST_TEST(ns(all.value_at(50)) == ns(histogram::trackable_max));
  BOOST_TEST(ns(all.value_at(75)) == ns(75s));
  BOOST_TEST(all.count_at_or_below(70s) == 2U);
  BOOST_TEST(all.count_at_or_below(75s) == 4U);
  BOOST_TEST((all.buckets().back()
              == histogram::bucket{histogram::trackable_max + 1ns, 75s, 2}));
}

BOOST_AUTO_TEST_CASE(the_longest_duration_there_is_overflows) {
  const auto all = of({nanoseconds::max()});
  BOOST_TEST(all.overflow_count() == 1U);
  BOOST_TEST(ns(all.value_at(50)) == ns(nanoseconds::max()));
  BOOST_TEST(all.mean().count()
             == static_cast<double>(histogram::trackable_max.count()));
}

// -- two histograms ----

BOOST_AUTO_TEST_CASE(a_count_is_as_many_records) {
  histogram counted;
  counted.record(5ms, 3);
  counted.record(70s, 2);
  counted.record(1ns, 0);
  BOOST_TEST((counted == of({5ms, 70s, 5ms, 70s, 5ms})));
}

BOOST_AUTO_TEST_CASE(counts_do_not_end_at_32_bits) {
  histogram all;
  all.record(1ms, 5'000'000'000);
  all.record(2ms, 15'000'000'000);
  BOOST_TEST(all.count() == 20'000'000'000U);
  BOOST_TEST(all.count_at_or_below(1ms) == 5'000'000'000U);
  BOOST_TEST(ns(all.value_at(25)) == ns(of({1ms}).value_at(100)));
}

BOOST_AUTO_TEST_CASE(all_counts_up_to_64_bits_have_percentiles) {
  histogram all;
  all.record(100ns, SIZE_MAX - 1);
  all.record(200ns);
  BOOST_TEST(ns(all.value_at(99.99)) == 100);
  BOOST_TEST(ns(all.value_at(100)) == 200);
  const auto rows = all.percentiles();
  BOOST_TEST(rows.size() < 1000U);
  BOOST_TEST(rows.back().count == SIZE_MAX);
  BOOST_TEST(ns(rows.back().value) == 200);
}

BOOST_DATA_TEST_CASE(merged_is_recorded_together, data::make(seeds), seed) {
  random_source random(static_cast<std::uint64_t>(seed));
  const auto left = many(random, random.below(300));
  const auto right = many(random, random.below(300));
  auto both = left;
  both.insert(both.end(), right.begin(), right.end());
  auto merged = of(left);
  merged.merge(of(right));
  BOOST_TEST((merged == of(both)));
  merged.merge(histogram());
  BOOST_TEST((merged == of(both)));
}

BOOST_DATA_TEST_CASE(subtracted_is_recorded_since, data::make(seeds), seed) {
  random_source random(static_cast<std::uint64_t>(seed));
  for (int round = 0; round < 20; ++round) {
    const auto before = many(random, random.below(20));
    const auto since = many(random, 1 + random.below(20));
    auto left = of(before);
    for (const auto value : since)
      left.record(value);
    BOOST_TEST(code_of(left.subtract(of(before))) == "ok");
    const auto exact = of(since);
    BOOST_TEST(left.count() == exact.count());
    BOOST_TEST(left.overflow_count() == exact.overflow_count());
    BOOST_TEST(ns(lowest_of(left.min())) == ns(lowest_of(exact.min())));
    BOOST_TEST(ns(lowest_of(left.max())) == ns(lowest_of(exact.max())));
    if (exact.overflow_count() == 0)
      BOOST_TEST((left.buckets() == exact.buckets()));
    if (std::ranges::max(since) >= of(before).max())
      BOOST_TEST(ns(left.max()) == ns(exact.max()));
    // Its JSON is still consistent with its buckets.
    BOOST_TEST((read_back(left) == left));
  }
}

BOOST_AUTO_TEST_CASE(less_itself_a_histogram_is_a_new_one) {
  auto all = of({1ms, 70s});
  BOOST_TEST(code_of(all.subtract(all)) == "ok");
  BOOST_TEST((all == histogram()));
}

BOOST_AUTO_TEST_CASE(more_than_there_is_cannot_be_subtracted) {
  auto all = of({1ms, 2ms, 3ms});
  for (const auto& wrong : {of({1ms, 2ms, 2ms}), of({4ms}), of({70s})}) {
    BOOST_TEST(code_of(all.subtract(wrong)) == "invalid_argument");
    BOOST_TEST((all == of({1ms, 2ms, 3ms})));
  }
}

BOOST_AUTO_TEST_CASE(a_cleared_histogram_is_a_new_one) {
  auto all = of({0ns, 1ms, 70s});
  all.clear();
  BOOST_TEST((all == histogram()));
}

BOOST_AUTO_TEST_CASE(a_copy_goes_its_own_way) {
  auto all = of({1ms});
  const auto copy = all;
  all.record(2ms);
  BOOST_TEST((copy == of({1ms})));
}

// -- memory ----

BOOST_AUTO_TEST_CASE(a_histogram_is_one_allocation_of_220_kB_at_most) {
  const auto allocations_before = allocations;
  const auto bytes_before = bytes_allocated;
  const histogram made;
  const auto count = allocations - allocations_before;
  const auto bytes = bytes_allocated - bytes_before;
  BOOST_TEST(count == 1U);
  BOOST_TEST(bytes <= 220'000U);
}

BOOST_AUTO_TEST_CASE(nothing_is_allocated_once_it_is_made) {
  random_source random(1);
  const auto values = many(random, 10'000);
  histogram all;
  histogram other;
  const auto before = allocations;
  for (const auto value : values) {
    all.record(value);
    other.record(value, 3);
  }
  other.merge(all);
  const bool subtracted = other.subtract(all).has_value();
  all = other;
  const auto length = all.value_at(99.9);
  all.clear();
  const auto count = allocations - before;
  BOOST_TEST(count == 0U);
  BOOST_TEST(subtracted);
  BOOST_TEST(ns(length) > 0);
}

// -- .hgrm ----

// Rows and mean are those of HdrHistogram's ports for these values.
BOOST_AUTO_TEST_CASE(hgrm_text_is_as_HdrHistogram_writes_it) {
  BOOST_TEST(to_hgrm(of({100ns, 200ns, 250ns, 600ns}), 1ns)
             == "       Value     Percentile TotalCount 1/(1-Percentile)\n"
                "\n"
                "     100.000 0.000000000000          1           1.00\n"
                "     100.000 0.100000000000          1           1.11\n"
                "     100.000 0.200000000000          1           1.25\n"
                "     200.000 0.300000000000          2           1.43\n"
                "     200.000 0.400000000000          2           1.67\n"
                "     200.000 0.500000000000          2           2.00\n"
                "     250.000 0.550000000000          3           2.22\n"
                "     250.000 0.600000000000          3           2.50\n"
                "     250.000 0.650000000000          3           2.86\n"
                "     250.000 0.700000000000          3           3.33\n"
                "     250.000 0.750000000000          3           4.00\n"
                "     600.000 0.775000000000          4           4.44\n"
                "     600.000 1.000000000000          4\n"
                "#[Mean    =      287.500, StdDeviation   =      188.331]\n"
                "#[Max     =      600.000, Total count    =            4]\n"
                "#[Buckets =           26, SubBuckets     =         2048]\n");
}

BOOST_AUTO_TEST_CASE(hgrm_values_are_divided_by_the_unit) {
  histogram all;
  all.record(2us);
  all.record(1500us, 10);
  BOOST_TEST(to_hgrm(all, 1us, 1)
             == "       Value     Percentile TotalCount 1/(1-Percentile)\n"
                "\n"
                "       2.000 0.000000000000          1           1.00\n"
                "    1500.159 0.500000000000         11           2.00\n"
                "    1500.159 1.000000000000         11\n"
                "#[Mean    =     1363.498, StdDeviation   =      430.543]\n"
                "#[Max     =     1500.159, Total count    =           11]\n"
                "#[Buckets =           26, SubBuckets     =         2048]\n");
}

BOOST_AUTO_TEST_CASE(hgrm_text_of_nothing_has_no_rows) {
  BOOST_TEST(to_hgrm(histogram(), 1ms)
             == "       Value     Percentile TotalCount 1/(1-Percentile)\n"
                "\n"
                "#[Mean    =        0.000, StdDeviation   =        0.000]\n"
                "#[Max     =        0.000, Total count    =            0]\n"
                "#[Buckets =           26, SubBuckets     =         2048]\n");
}

BOOST_DATA_TEST_CASE(percentile_rows_agree_with_the_histogram,
                     data::make(seeds),
                     seed) {
  random_source random(static_cast<std::uint64_t>(seed));
  const auto all = of(many(random, 3000));
  // Numbers of ticks whose steps are exact in binary.
  const auto rows
    = all.percentiles(random.pick(std::vector{1U, 2U, 4U, 5U, 8U}));
  BOOST_TEST(rows.front().percentile == 0);
  BOOST_TEST(rows.back().percentile == 100);
  BOOST_TEST(rows.back().count == 3000U);
  for (std::size_t index = 1; index < rows.size(); ++index) {
    const auto& row = rows[index];
    BOOST_TEST(row.percentile > rows[index - 1].percentile);
    BOOST_TEST(ns(row.value) == ns(all.value_at(row.percentile)));
    BOOST_TEST(row.count == all.count_at_or_below(row.value));
  }
}

BOOST_DATA_TEST_CASE(buckets_add_up_to_all, data::make(seeds), seed) {
  random_source random(static_cast<std::uint64_t>(seed));
  const auto all = of(many(random, 3000));
  std::uint64_t total = 0;
  auto before = -1ns;
  for (const auto& bucket : all.buckets()) {
    BOOST_TEST(ns(bucket.low) > ns(before));
    BOOST_TEST(ns(bucket.high) >= ns(bucket.low));
    BOOST_TEST(bucket.count > 0U);
    total += bucket.count;
    before = bucket.high;
  }
  BOOST_TEST(total == all.count());
}

// -- JSON ----

BOOST_AUTO_TEST_CASE(json_text_has_these_fields) {
  BOOST_TEST(to_text(to_json(of({100ns, 1001ns, 10'001ns, 75s})))
             == R"({"buckets":[[100,1],[1001,1],[10000,1],[60028878848,1]],)"
                R"("count":4,"max":75000000000,"mean":15007222487.875,)"
                R"("min":100,"overflow":1,"p50":1001,"p90":75000000000,)"
                R"("p95":75000000000,"p99":75000000000,)"
                R"("p99_9":75000000000,"p99_99":75000000000})");
}

BOOST_DATA_TEST_CASE(json_reads_back_equal, data::make(seeds), seed) {
  random_source random(static_cast<std::uint64_t>(seed));
  for (const std::size_t count : {0U, 1U, 2U, 3U, 10U, 1'000U}) {
    const auto all = of(many(random, count));
    BOOST_TEST((read_back(all) == all));
  }
}

BOOST_AUTO_TEST_CASE(json_of_one_bucket_reads_back_its_two_ends) {
  const auto all = of({10'001ns, 10'003ns, 10'006ns});
  BOOST_TEST((read_back(all) == all));
}

BOOST_AUTO_TEST_CASE(mean_and_percentiles_are_not_read) {
  const auto all = of({1ms, 2ms, 70s});
  BOOST_TEST((read_back(all,
                        [](json& text) {
                          text.erase("p50");
                          text["mean"] = nullptr;
                          text["p75"] = 1;
                        })
              == all));
}

namespace {

// A field, and its damaged value.
const std::vector<std::pair<std::string, std::string>> damages = {
  {"count", "4"},
  {"count", "3.5"},
  {"count", "\"3\""},
  {"count", "-3"},
  {"overflow", "0"},
  {"overflow", "null"},
  {"min", "999"},
  {"min", "1002"},
  {"min", "-1001"},
  {"min", "80000000000"},
  {"max", "60028878847"},
  {"max", "9223372036854775808"},
  {"max", "{}"},
  {"buckets", "{}"},
  {"buckets", "[]"},
  {"buckets", "[[1001,1],[10000,1]]"},
  {"buckets", "[[1001,1],[10000,2],[60028878848,1]]"},
  {"buckets", "[[1001,1],[10001,1],[60028878848,1]]"},
  {"buckets", "[[10000,1],[1001,1],[60028878848,1]]"},
  {"buckets", "[[1001,1],[10000,1],[60028878848,1],[60028878848,1]]"},
  {"buckets", "[[1001,1],[10000,1],[20000,0],[60028878848,1]]"},
  {"buckets", "[[1001,1],[10000,1],[60028878848,0]]"},
  {"buckets", "[[1001,1],[10000,1],[60028878848,1,1]]"},
  {"buckets", "[[1001,1],[10000,1],[60028878848]]"},
  {"buckets", "[[1001,1],[10000,1],60028878848]"},
  {"buckets", "[[1001,1],[10000,-1],[60028878848,1]]"},
  {"buckets", "[[1001,1],[10000,1.5],[60028878848,1]]"},
  {"buckets", "[[1001,1],[-10000,1],[60028878848,1]]"},
  // The counts add up to three again in 64 bits, by overflow.
  {"buckets",
   "[[1001,2],[10000,18446744073709551615],[10008,1],[60028878848,1]]"},
};

} // namespace

BOOST_DATA_TEST_CASE(damaged_json_is_refused,
                     data::xrange(damages.size()),
                     index) {
  const auto& [field, text] = damages[index];
  auto stored = to_json(of({1001ns, 10'001ns, 75s}));
  stored[field] = parse_json(text).value();
  BOOST_TEST_CONTEXT(field << " " << text)
  BOOST_TEST(code_of(histogram_from_json(stored)) == "invalid_argument");
}

BOOST_AUTO_TEST_CASE(json_without_a_field_that_is_read_is_refused) {
  for (const std::string field :
       {"count", "overflow", "min", "max", "buckets"}) {
    auto stored = to_json(of({1001ns}));
    stored.erase(field);
    BOOST_TEST(reason_of(histogram_from_json(stored))
               == "read a histogram: '" + field + "' is missing");
  }
}

BOOST_AUTO_TEST_CASE(json_that_is_no_object_is_refused) {
  for (const std::string_view text : {"null", "[]", "3", "\"count\""})
    BOOST_TEST(code_of(histogram_from_json(parse_json(text).value()))
               == "invalid_argument");
}

BOOST_AUTO_TEST_SUITE_END()
