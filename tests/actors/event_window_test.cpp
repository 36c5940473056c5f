// The newest events of a session, by their numbers.

#include "troupe/actors/parts/event_window.hpp"

#include <boost/test/unit_test.hpp>

#include <memory>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::actors;

BOOST_AUTO_TEST_SUITE(newest_events)

namespace {

event_ptr said(std::uint64_t number) {
  event made;
  made.id = std::to_string(number);
  return std::make_shared<const event>(std::move(made));
}

std::vector<event_ptr> said(std::uint64_t first, std::uint64_t last) {
  std::vector<event_ptr> all;
  for (auto number = first; number <= last; ++number)
    all.push_back(said(number));
  return all;
}

// Returns true if the window has the events from `first` to its newest, and no
// others.
bool is_from(const event_window& window, std::uint64_t first) {
  for (auto number = first; number <= window.revision(); ++number)
    if (!window.has(number) || window.at(number)->id != std::to_string(number))
      return false;
  return window.before() == first - 1 && !window.has(first - 1)
         && !window.has(window.revision() + 1);
}

} // namespace

BOOST_AUTO_TEST_CASE(a_new_session_has_no_events) {
  const event_window window;
  BOOST_TEST(window.revision() == 0U);
  BOOST_TEST(!window.has(0));
  BOOST_TEST(!window.has(1));
}

BOOST_AUTO_TEST_CASE(events_are_numbered_from_one) {
  event_window window;
  window.push_back(said(1));
  window.push_back(said(2));
  BOOST_TEST(window.revision() == 2U);
  BOOST_TEST(is_from(window, 1));
}

BOOST_AUTO_TEST_CASE(a_loaded_window_goes_on_behind_its_newest_event) {
  event_window window(10, said(8, 10));
  window.push_back(said(11));
  BOOST_TEST(window.revision() == 11U);
  BOOST_TEST(is_from(window, 8));
}

BOOST_AUTO_TEST_CASE(older_events_come_before_it) {
  event_window window(10, said(8, 10));
  const auto seen = window.slice();
  window.add_older(said(3, 7));
  BOOST_TEST(is_from(window, 3));
  BOOST_TEST(window.revision() == 10U);
  BOOST_TEST(seen.size() == 3U); // A slice stays as it was.
}

BOOST_AUTO_TEST_CASE(dropped_events_keep_the_numbers_of_the_others) {
  event_window window(100, said(1, 100));
  window.keep_newest(10);
  BOOST_TEST(window.before() > 0U);
  BOOST_TEST(window.before() <= 90U);
  BOOST_TEST(is_from(window, window.before() + 1));
  BOOST_TEST(window.revision() == 100U);
}

BOOST_AUTO_TEST_SUITE_END()
