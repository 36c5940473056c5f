// Limits of requests and tokens a minute, on simulated time.

#include "troupe/models/http/rate_limit.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <vector>

using namespace troupe;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(rate_limits)

namespace {

// A rate limit, and the names of the admitted calls in order, as one text.
struct door {
  explicit door(rate_limit_options limits)
    : limit(std::make_shared<rate_limit>(limits, time)) {}

  void enter(const std::string& who, double tokens = 0) {
    limit->enter({.tokens = tokens,
                  .go = [this, who] { through += who; },
                  .is_over = [this, who] { return gone.contains(who); }});
  }

  std::shared_ptr<simulated_environment> time
    = std::make_shared<simulated_environment>(1);
  std::shared_ptr<rate_limit> limit;
  std::string through;
  std::set<std::string> gone;
};

} // namespace

BOOST_AUTO_TEST_CASE(a_minutes_worth_goes_at_once_then_evenly) {
  door on({.requests_per_minute = 3});
  for (const auto* who : {"a", "b", "c", "d", "e"})
    on.enter(who);
  BOOST_TEST(on.through == "abc");
  on.time->advance(19s);
  BOOST_TEST(on.through == "abc");
  on.time->advance(2s);
  BOOST_TEST(on.through == "abcd");
  on.time->advance(20s);
  BOOST_TEST(on.through == "abcde");
}

BOOST_AUTO_TEST_CASE(nobody_overtakes) {
  door on({.tokens_per_minute = 600});
  on.enter("a", 600);
  on.enter("b", 300);
  on.enter("c", 100);
  on.time->advance(29s);
  BOOST_TEST(on.through == "a");
  on.time->advance(2s);
  BOOST_TEST(on.through == "ab");
  on.time->advance(10s);
  BOOST_TEST(on.through == "abc");
}

BOOST_AUTO_TEST_CASE(what_was_used_counts_and_not_what_was_expected) {
  door on({.tokens_per_minute = 600});
  on.enter("a", 100);
  on.limit->correct(100, 600);
  on.enter("b", 10);
  BOOST_TEST(on.through == "a");
  on.time->advance(2s);
  BOOST_TEST(on.through == "ab");
  on.limit->correct(10, 0);
  on.time->advance(60s);
  on.limit->correct(1'000'000, 0); // At most the tokens of one minute.
  on.enter("c", 600);
  on.enter("d", 600);
  BOOST_TEST(on.through == "abc");
}

BOOST_AUTO_TEST_CASE(more_than_a_minutes_worth_is_let_through_all_the_same) {
  door on({.tokens_per_minute = 60});
  on.enter("a", 1'000);
  BOOST_TEST(on.through == "a");
  on.enter("b", 1);
  on.time->advance(15min);
  BOOST_TEST(on.through == "a");
  on.time->advance(2min);
  BOOST_TEST(on.through == "ab");
}

BOOST_AUTO_TEST_CASE(who_has_given_up_takes_nothing) {
  door on({.requests_per_minute = 1});
  for (const auto* who : {"a", "b", "c", "d"})
    on.enter(who);
  on.gone = {"b", "c"};
  on.time->advance(61s);
  BOOST_TEST(on.through == "ad");
}

BOOST_AUTO_TEST_CASE(what_comes_back_is_for_who_waits) {
  door on({.tokens_per_minute = 600});
  on.enter("a", 600);
  on.enter("b", 300);
  BOOST_TEST(on.through == "a");
  on.limit->correct(600, 100);
  BOOST_TEST(on.through == "ab");
}

BOOST_AUTO_TEST_CASE(an_absurd_use_is_ten_minutes_worth) {
  door on({.tokens_per_minute = 600});
  on.enter("a", 600);
  on.limit->correct(600, 9e18);
  on.enter("b", 600);
  on.time->advance(9min);
  BOOST_TEST(on.through == "a");
  BOOST_TEST(on.time->waiting() == 1U);
  on.time->advance(2min);
  BOOST_TEST(on.through == "ab");
}

BOOST_AUTO_TEST_CASE(both_limits_hold) {
  door on({.requests_per_minute = 60, .tokens_per_minute = 60});
  on.enter("a", 60);
  on.enter("b", 30);
  on.time->advance(29s);
  BOOST_TEST(on.through == "a");
  on.time->advance(2s);
  BOOST_TEST(on.through == "ab");
}

BOOST_AUTO_TEST_CASE(one_that_is_gone_lets_nobody_through) {
  door on({.requests_per_minute = 1});
  on.enter("a");
  on.enter("b");
  on.limit.reset();
  on.time->advance(5min);
  BOOST_TEST(on.through == "a");
}

BOOST_AUTO_TEST_SUITE_END()
