// The confidence intervals of a comparison.

#include "troupe/load/pages/comparison.hpp"

#include "compared_runs.hpp"
#include <boost/test/unit_test.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <random>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
using namespace troupe::load;
namespace tools = boost::test_tools;

BOOST_AUTO_TEST_SUITE(comparison_intervals)

namespace {

double width(const comparison& made) {
  const auto interval = figure(made, "rate").interval.value();
  return interval.high - interval.low;
}

// Rates that vary by a random factor, drawn by Box and Muller's method,
// because the distributions of standard libraries differ.
class noise {
public:
  explicit noise(std::uint64_t seed) : random_(seed) {
    BOOST_TEST_MESSAGE("seed " << seed);
  }

  runs draw(std::size_t count, double rate, double spread) {
    std::vector<double> rates;
    while (rates.size() < count)
      rates.push_back(rate * std::exp(spread * normal()));
    return with_rates(rates);
  }

private:
  double uniform() {
    return (static_cast<double>(random_() >> 11U) + 0.5) * 0x1p-53;
  }

  double normal() {
    const auto length = std::sqrt(-2 * std::log(uniform()));
    return length * std::cos(2 * std::numbers::pi * uniform());
  }

  std::mt19937_64 random_;
};

} // namespace

// The expected values were computed in Python, with mpmath's incomplete beta
// function for the distribution and `findroot` for its quantile: 4.406 degrees
// of freedom.
BOOST_AUTO_TEST_CASE(the_interval_is_that_of_welch_on_logarithms) {
  const auto rate = figure(compare(rates_before, rates_after, {}), "rate");
  const auto near = tools::tolerance(1e-9);
  BOOST_TEST(rate.before == 1049.20574856, near);
  BOOST_TEST(rate.after == 904.259784969, near);
  BOOST_TEST(rate.change.value() == -0.138148274342, near);
  BOOST_TEST(rate.interval.value().low == -0.217652947174, near);
  BOOST_TEST(rate.interval.value().high == -0.0505640759595, near);
  const auto surer
    = figure(compare(rates_before, rates_after, {.confidence = 0.99}), "rate");
  BOOST_TEST(surer.interval.value().low == -0.26289309687, near);
  BOOST_TEST(surer.interval.value().high == 0.00770782889884, near);
}

BOOST_AUTO_TEST_CASE(swapped_sides_give_inverse_ratios) {
  const auto there = figure(compare(rates_before, rates_after, {}), "rate");
  const auto back = figure(compare(rates_after, rates_before, {}), "rate");
  const auto near = tools::tolerance(1e-12);
  BOOST_TEST((1 + *there.change) * (1 + *back.change) == 1, near);
  BOOST_TEST((1 + there.interval->low) * (1 + back.interval->high) == 1, near);
  BOOST_TEST((1 + there.interval->high) * (1 + back.interval->low) == 1, near);
  BOOST_TEST((there.found == finding::worse));
  BOOST_TEST((back.found == finding::better));
}

BOOST_AUTO_TEST_CASE(another_unit_changes_nothing) {
  const auto scaled = [](runs side) {
    for (auto& run : side)
      run.rate *= 1e-7;
    return side;
  };
  const auto plain = figure(compare(rates_before, rates_after, {}), "rate");
  const auto other
    = figure(compare(scaled(rates_before), scaled(rates_after), {}), "rate");
  const auto near = tools::tolerance(1e-9);
  BOOST_TEST(other.after == plain.after * 1e-7, near);
  BOOST_TEST(*other.change == *plain.change, near);
  BOOST_TEST(other.interval->low == plain.interval->low, near);
  BOOST_TEST(other.interval->high == plain.interval->high, near);
}

BOOST_AUTO_TEST_CASE(more_confidence_takes_a_wider_interval) {
  double before = 0;
  for (const auto confidence : {0.5, 0.8, 0.95, 0.99, 0.999}) {
    const auto now
      = width(compare(rates_before, rates_after, {.confidence = confidence}));
    BOOST_TEST(now > before, confidence);
    before = now;
  }
}

BOOST_AUTO_TEST_CASE(the_interval_covers_the_truth_as_often_as_it_says) {
  noise source(20'260'711);
  constexpr int draws = 2'000;
  int covered = 0;
  for (int draw = 0; draw < draws; ++draw) {
    const auto before = source.draw(6, 1'000, 0.05);
    const auto after = source.draw(6, 1'200, 0.15);
    const auto interval = *figure(compare(before, after, {}), "rate").interval;
    covered += interval.low <= 0.2 && interval.high >= 0.2 ? 1 : 0;
  }
  BOOST_TEST(covered >= draws * 93 / 100);
  BOOST_TEST(covered <= draws * 97 / 100);
}

BOOST_AUTO_TEST_CASE(noise_is_hardly_ever_a_regression) {
  noise source(7);
  constexpr int draws = 1'000;
  int regressions = 0;
  int beyond_margin = 0;
  for (int draw = 0; draw < draws; ++draw) {
    const auto made
      = compare(source.draw(5, 1'000, 0.1), source.draw(5, 1'000, 0.1), {});
    regressions += made.regressed() ? 1 : 0;
    beyond_margin += *figure(made, "rate").change < -0.05 ? 1 : 0;
  }
  // The rate of one tail of the interval; without the interval many more would
  // be reported.
  BOOST_TEST(regressions < draws * 4 / 100);
  BOOST_TEST(beyond_margin > draws * 15 / 100);
}

BOOST_AUTO_TEST_CASE(a_drop_beyond_the_noise_is_found) {
  noise source(11);
  constexpr int draws = 500;
  int regressions = 0;
  for (int draw = 0; draw < draws; ++draw)
    regressions
      += compare(source.draw(5, 1'000, 0.03), source.draw(5, 850, 0.03), {})
             .regressed()
           ? 1
           : 0;
  BOOST_TEST(regressions > draws * 98 / 100);
}

BOOST_AUTO_TEST_CASE(runs_that_agree_have_an_interval_without_width) {
  // The logarithms of tenths do not add up exactly.
  const auto same = compare(with_rates({0.1, 0.1, 0.1}),
                            with_rates({0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1}),
                            {});
  BOOST_TEST((figure(same, "rate").interval == change_interval{0, 0}));
  const auto slower = figure(
    compare(with_rates({0.3, 0.3, 0.3}), with_rates({0.1, 0.1, 0.1}), {}),
    "rate");
  BOOST_TEST(
    (slower.interval == change_interval{*slower.change, *slower.change}));
  BOOST_TEST((slower.found == finding::worse));
}

BOOST_AUTO_TEST_CASE(numbers_far_apart_stay_finite) {
  const auto made
    = compare(with_rates({1e-300, 1e18}), with_rates({1e18, 1e-300}), {});
  const auto interval = figure(made, "rate").interval.value();
  BOOST_TEST(std::isfinite(interval.low));
  BOOST_TEST(std::isfinite(interval.high));
  BOOST_TEST(check_json(to_json(made), "the comparison").has_value());
  BOOST_TEST(found(made, "rate") == "same");
}

BOOST_AUTO_TEST_CASE(one_run_each_has_no_interval_and_is_judged_by_margin) {
  const auto made = compare(with_rates({1'000}), with_rates({900}), {});
  BOOST_TEST(!figure(made, "rate").interval.has_value());
  BOOST_TEST(*figure(made, "rate").change == -0.1, tools::tolerance(1e-9));
  BOOST_TEST(last_line(made) == "comparison: regression: rate -10.0 %\n");
  BOOST_TEST(has(made.notes,
                 "few runs: 1 before, 1 after; run with --repeat 5 or more"));
  BOOST_TEST(has(made.notes,
                 "no intervals: a single run does not show how much runs vary, "
                 "so a change may be by chance"));
  // One run compared with several has no interval either.
  const auto single = with_rates({1'000});
  BOOST_TEST(!figure(compare(single, five(), {}), "rate").interval);
  BOOST_TEST(!figure(compare(five(), single, {}), "rate").interval);
}

BOOST_AUTO_TEST_SUITE_END()
