// Answers that wait for a refreshed view: their order, and their release.

#include "troupe/actors/sessions/held_answers.hpp"

#include <boost/test/unit_test.hpp>

#include <memory>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::actors;

BOOST_AUTO_TEST_SUITE(answers_held_back)

namespace {

struct numbered : note {
  explicit numbered(int which) : note(letter_kind::finished), number(which) {}

  int number;
};

letter_list answers(const std::vector<int>& which) {
  letter_list all;
  for (const auto each : which)
    all.push_back(std::make_unique<numbered>(each));
  return all;
}

// The numbers of all answers that wait for nothing.
std::vector<int> taken(held_answers& held) {
  std::vector<int> numbers;
  while (auto ready = held.take())
    while (!ready->letters.empty()) {
      const auto next = ready->letters.pop_front();
      numbers.push_back(static_cast<const numbered&>(*next).number);
    }
  return numbers;
}

const result<session> shown = session({}, readonly_state(), {}, {}, 0);

} // namespace

BOOST_AUTO_TEST_CASE(an_answer_waits_for_its_refresh) {
  held_answers held;
  const auto number = held.hold(answers({1, 2}));
  BOOST_TEST(taken(held).empty());
  held.note(number, shown);
  BOOST_TEST(taken(held) == std::vector({1, 2}),
             boost::test_tools::per_element());
  BOOST_TEST(held.empty());
}

BOOST_AUTO_TEST_CASE(later_answers_wait_behind_it) {
  held_answers held;
  const auto number = held.hold(answers({1}));
  held.hold_behind(std::make_unique<numbered>(2));
  held.hold_behind(std::make_unique<numbered>(3));
  BOOST_TEST(taken(held).empty());
  held.note(number, shown);
  BOOST_TEST(taken(held) == std::vector({1, 2, 3}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_later_refresh_serves_earlier_answers) {
  held_answers held;
  held.hold(answers({1}));
  const auto second = held.hold(answers({2}));
  held.note(second, shown);
  BOOST_TEST(taken(held) == std::vector({1, 2}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(an_earlier_refresh_serves_no_later_answers) {
  held_answers held;
  const auto first = held.hold(answers({1}));
  const auto second = held.hold(answers({2}));
  held.hold_behind(std::make_unique<numbered>(3));
  held.note(first, shown);
  BOOST_TEST(taken(held) == std::vector({1}), boost::test_tools::per_element());
  BOOST_TEST(!held.empty());
  held.note(second, shown);
  BOOST_TEST(taken(held) == std::vector({2, 3}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(the_first_refresh_that_comes_counts) {
  held_answers held;
  const auto number = held.hold(answers({1}));
  held.note(number, error(errc::not_found, "gone"));
  held.note(number, shown);
  const auto ready = held.take();
  BOOST_REQUIRE(ready.has_value());
  BOOST_TEST(!ready->seen->has_value());
}

BOOST_AUTO_TEST_CASE(at_the_end_all_answers_go) {
  held_answers held;
  const auto first = held.hold(answers({1}));
  held.note(first, shown);
  held.hold(answers({2}));
  held.give_up(error(errc::cancelled, "over"));
  auto ready = held.take();
  BOOST_REQUIRE(ready.has_value());
  BOOST_TEST(ready->seen->has_value());
  ready = held.take();
  BOOST_REQUIRE(ready.has_value());
  BOOST_TEST((ready->seen->error().code() == errc::cancelled));
  BOOST_TEST(held.empty());
}

BOOST_AUTO_TEST_SUITE_END()
