// Turns that wait for answers, read from events.

#include "troupe/agents/turns/open_turn.hpp"

#include "troupe/agents/turns/resumption.hpp"

#include <boost/test/unit_test.hpp>

#include <string>
#include <utility>
#include <vector>

using namespace troupe;

BOOST_AUTO_TEST_SUITE(open_turns)

namespace {

event said_by(std::string author, std::string id, part element) {
  event said(
    content(author == "user" ? "user" : "model", {std::move(element)}));
  said.author = std::move(author);
  said.id = std::move(id);
  return said;
}

/// The history of an agent `a` that asks in `q` whether it may make call `c`,
/// and of the user's permission in message `m`.
event_log asked_and_answered() {
  event_log log;
  auto original = json::object();
  original["id"] = "c";
  original["name"] = "pay";
  original["args"] = json::object();
  auto args = json::object();
  args["originalFunctionCall"] = original;
  auto permission = json::object();
  permission["confirmed"] = true;
  const auto add = [&log](event said) {
    log.push_back(std::make_shared<const event>(std::move(said)));
  };
  add(said_by("a", "1", part(function_call("c", "pay", json::object()))));
  add(said_by(
    "a", "2", part(function_call("q", std::string(confirmation_name), args))));
  add(said_by(
    "user",
    "m",
    part(function_response("q", std::string(confirmation_name), permission))));
  return log;
}

} // namespace

BOOST_AUTO_TEST_CASE(an_answer_decides_its_call) {
  const auto log = asked_and_answered();
  const auto turn = find_open_turn(log.slice(), "a", "", {"q"});
  BOOST_TEST_REQUIRE(turn.decided.size() == 1U);
  BOOST_TEST(turn.decided.front().call.id == "c");
  BOOST_TEST(turn.awaited.empty());
}

// The run of the message has failed, and gave its pause back.
BOOST_AUTO_TEST_CASE(a_withdrawn_answer_decides_nothing) {
  auto log = asked_and_answered();
  log.push_back(std::make_shared<const event>(make_release_event("a", "m")));
  const auto turn = find_open_turn(log.slice(), "a", "", {"q"});
  BOOST_TEST(turn.decided.empty());
  BOOST_TEST(turn.awaited == std::vector<std::string>{"q"},
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
