// Errors: the codes, whose names are part of the interface, and results that
// throw them.

#include "troupe/core/error.hpp"

#include "../outcome.hpp"
#include <boost/test/unit_test.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(errors)

BOOST_AUTO_TEST_CASE(codes_keep_their_names) {
  const std::vector<std::string> names = {"invalid_argument",
                                          "type_error",
                                          "too_large",
                                          "not_found",
                                          "gone",
                                          "already_exists",
                                          "conflict",
                                          "busy",
                                          "store_failed",
                                          "corrupt",
                                          "template_error",
                                          "model_failed",
                                          "tool_failed",
                                          "callback_failed",
                                          "circular_agent_call",
                                          "would_deadlock",
                                          "limit_exceeded",
                                          "stuck_join",
                                          "deadline_exceeded",
                                          "cancelled",
                                          "internal"};
  for (std::size_t index = 0; index < names.size(); ++index)
    BOOST_TEST(to_string(static_cast<errc>(index)) == names[index]);
}

BOOST_AUTO_TEST_CASE(an_error_is_shown_as_code_and_text) {
  const error failure(errc::conflict, "event 17 moved on");
  BOOST_TEST(to_string(failure) == "conflict: event 17 moved on");
  BOOST_TEST(failure.what() == "event 17 moved on");
  BOOST_TEST((failure == error(errc::conflict, "event 17 moved on")));
  BOOST_TEST((failure != error(errc::busy, "event 17 moved on")));
}

BOOST_AUTO_TEST_CASE(the_value_of_a_failed_result_is_thrown) {
  const result<int> failed = error(errc::busy, "later");
  const result<void> refused = error(errc::not_found, "nowhere");
  BOOST_TEST(code_thrown_by([&failed] { failed.value(); }) == "busy");
  BOOST_TEST(code_thrown_by([&refused] { refused.value(); }) == "not_found");
  BOOST_TEST(code_thrown_by([] { result<void>().value(); }) == "ok");
}

BOOST_AUTO_TEST_CASE(a_value_can_be_moved_out_of_its_result) {
  result<std::unique_ptr<int>> made = std::make_unique<int>(7);
  BOOST_TEST(*made.value() == 7);
  const auto taken = std::move(made).value();
  BOOST_TEST(*taken == 7);
}

BOOST_AUTO_TEST_SUITE_END()
