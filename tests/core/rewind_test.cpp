// Rewinds as events hold them, and those of ADK.

#include "troupe/core/rewind.hpp"

#include "../outcome.hpp"
#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(rewinds)

namespace {

event of_run(const std::string& run) {
  event said;
  said.invocation_id = run;
  return said;
}

event of_adk(const std::string& run, const std::string& before) {
  auto said = of_run(run);
  said.actions.extra = json{{"rewindBeforeInvocationId", before}};
  return said;
}

} // namespace

BOOST_AUTO_TEST_CASE(an_event_says_how_many_it_takes_back) {
  event said;
  BOOST_TEST(!taken_back_by(said).has_value());
  BOOST_TEST(!is_rewind(said));
  said.actions.extra = json{{"route", "a"}};
  take_back(said, 3, "i1");
  BOOST_TEST(taken_back_by(said).value() == 3U);
  BOOST_TEST(is_rewind(said));
  BOOST_TEST(said.actions.extra.data()
             == json({{"route", "a"},
                      {"agentState", {{"takesBack", 3}}},
                      {"rewindBeforeInvocationId", "i1"}}));
}

BOOST_AUTO_TEST_CASE(other_forms_are_no_number) {
  for (const auto& state :
       {json(-1), json("3"), json(1.5), json(nullptr), json::object()}) {
    event said;
    said.actions.extra = json{{"agentState", {{"takesBack", state}}}};
    BOOST_TEST(!taken_back_by(said).has_value());
    BOOST_TEST(is_rewind(said)); // So it is refused, not stored.
    std::vector<event> log{said};
    BOOST_TEST(code_of(number_rewinds(log)) == "invalid_argument");
  }
  event said;
  said.actions.extra = json{{"agentState", "takesBack"}};
  BOOST_TEST(!taken_back_by(said).has_value());
}

// A number that was never text is signed, and becomes unsigned in a store.
BOOST_AUTO_TEST_CASE(a_signed_number_counts) {
  event said;
  said.actions.extra = json{{"agentState", {{"takesBack", 2}, {"step", 7}}}};
  BOOST_TEST(taken_back_by(said).value() == 2U);
  take_back(said, 3);
  BOOST_TEST(said.actions.extra.data()["agentState"]
             == json({{"takesBack", 3}, {"step", 7}}));
}

BOOST_AUTO_TEST_CASE(rewinds_of_adk_get_their_numbers) {
  std::vector<event> log{of_run("a"),
                         of_run("b"),
                         of_run("b"),
                         of_adk("r1", "b"),
                         of_run("a"),
                         of_adk("r2", "unknown"),
                         of_adk("r3", "a")};
  BOOST_TEST(number_rewinds(log).has_value());
  BOOST_TEST(taken_back_by(log[3]).value() == 2U);
  BOOST_TEST(taken_back_by(log[5]).value() == 0U); // It takes back nothing.
  BOOST_TEST(taken_back_by(log[6]).value() == 6U); // From the first event on.
  BOOST_TEST(!taken_back_by(log[4]).has_value());
  // A number that is there stays.
  BOOST_TEST(number_rewinds(log).has_value());
  BOOST_TEST(taken_back_by(log[3]).value() == 2U);
}

BOOST_AUTO_TEST_CASE(adk_is_told_what_it_knows) {
  std::vector<event> log{of_run("a"), of_adk("r", "a")};
  BOOST_TEST(number_rewinds(log).has_value());
  const auto actions = to_adk_json(log[1])["actions"];
  BOOST_TEST(actions["rewindBeforeInvocationId"] == "a");
  BOOST_TEST(!actions.contains("agentState"));
  // The number stays if the field cannot say it.
  event said;
  take_back(said, 1);
  BOOST_TEST(to_adk_json(said)["actions"]["agentState"]["takesBack"] == 1);
}

BOOST_AUTO_TEST_CASE(a_number_beyond_the_log_is_refused) {
  std::vector<event> log{of_run("a"), of_run("r")};
  take_back(log[1], 2);
  const auto numbered = number_rewinds(log);
  BOOST_TEST(code_of(numbered) == "invalid_argument");
  BOOST_TEST(numbered.error().message()
             == "event 2: it takes back 2 events, but only 1 are before it");
  // The number and ADK's field must agree.
  std::vector<event> both{of_run("a"), of_run("a"), of_adk("r", "a")};
  take_back(both[2], 1, "a");
  BOOST_TEST(code_of(number_rewinds(both)) == "invalid_argument");
}

BOOST_AUTO_TEST_SUITE_END()
