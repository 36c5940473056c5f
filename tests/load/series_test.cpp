// Several runs of one test: their mean, its confidence, and their verdict.

#include "troupe/load/pages/series.hpp"

#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::load;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(series)

namespace {

outcome run_of(std::uint64_t stored, std::uint64_t lost = 0) {
  outcome made;
  made.chosen.appends = stored;
  made.stored = stored;
  made.elapsed = 1s;
  for (std::uint64_t count = 0; count < stored; ++count)
    made.response.record(std::chrono::microseconds(count));
  made.found.emplace();
  made.found->acknowledged = stored;
  made.found->lost = lost;
  return made;
}

} // namespace

// By scipy.stats.t.interval(0.95, 3, 11.5, sem): 11.5 -+ 3.182446 * 0.645497.
BOOST_AUTO_TEST_CASE(the_interval_is_students) {
  const auto found = estimate_mean({10, 11, 12, 13});
  BOOST_TEST(found.mean == 11.5);
  BOOST_TEST(*found.low == 9.445739743239121,
             boost::test_tools::tolerance(1e-9));
  BOOST_TEST(*found.high == 13.554260256760879,
             boost::test_tools::tolerance(1e-9));
}

BOOST_AUTO_TEST_CASE(one_value_has_no_interval) {
  const auto found = estimate_mean({10});
  BOOST_TEST(found.mean == 10);
  BOOST_TEST(!found.low.has_value());
}

BOOST_AUTO_TEST_CASE(the_verdict_is_on_all_runs_together) {
  BOOST_TEST(
    to_text(std::vector{run_of(100), run_of(200)})
      .ends_with("\nverdict: 300 acknowledged, 0 lost, 0 doubled, order "
                 "ok, totals ok\n"));
  const auto text = to_text(std::vector{run_of(100), run_of(200, 2)});
  BOOST_TEST(text.ends_with("\nverdict: 300 acknowledged, 2 lost, 0 doubled, "
                            "order ok, totals ok\n"),
             text);
  auto unread = run_of(10);
  unread.found.reset();
  unread.unchecked = "store_failed: gone";
  BOOST_TEST(to_text(std::vector{run_of(100), unread})
               .ends_with("verdict: not checked, the store could not be read: "
                          "store_failed: gone\n"));
}

BOOST_AUTO_TEST_SUITE_END()
