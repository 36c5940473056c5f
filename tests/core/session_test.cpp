// A fetched session and its JSON.

#include "troupe/core/session.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

using namespace troupe;

BOOST_AUTO_TEST_SUITE(sessions)

namespace {

session fetched(const event_log& log) {
  state_snapshot snapshot;
  snapshot.session.set("topic", json("owls"));
  snapshot.user.set("name", json("ann"));
  snapshot.app.set("n", json(2));
  return {{"press", "ann", "s1"},
          readonly_state(std::move(snapshot)),
          log.slice(),
          timestamp(std::chrono::milliseconds(1500)),
          7};
}

} // namespace

BOOST_AUTO_TEST_CASE(an_empty_session_shows_all_its_fields) {
  BOOST_TEST(
    to_text(to_json(fetched(event_log())))
    == R"({"appName":"press","events":[],"id":"s1","lastUpdateTime":1.5,)"
       R"("revision":7,"state":{"app:n":2,"topic":"owls","user:name":"ann"},)"
       R"("userId":"ann"})");
}

BOOST_AUTO_TEST_CASE(events_are_shown_oldest_first_in_wire_form) {
  event_log log;
  for (const auto* words : {"one", "two"}) {
    event said(user_text(words));
    said.author = "user";
    log.push_back(std::make_shared<const event>(std::move(said)));
  }
  const auto shown = to_json(fetched(log));
  BOOST_REQUIRE(shown["events"].size() == 2U);
  BOOST_TEST(to_text(shown["events"][0]) == to_text(to_json(*log[0])));
  BOOST_TEST(to_text(shown["events"][1]) == to_text(to_json(*log[1])));
}

BOOST_AUTO_TEST_CASE(a_fetched_session_cannot_be_written_to) {
  using view = decltype(std::declval<session&>().state());
  static_assert(std::is_same_v<view, const readonly_state&>);
  static_assert(!std::is_convertible_v<view, state&>);
  const auto held = fetched(event_log());
  BOOST_TEST(held.state().get<std::string>("user:name") == "ann");
}

// Under AddressSanitizer a loop over a temporary that has ended fails.
BOOST_AUTO_TEST_CASE(loops_over_a_temporary_session_are_safe) {
  event_log log;
  for (const auto* words : {"one", "two"})
    log.push_back(std::make_shared<const event>(user_text(words)));
  std::string seen;
  for (const auto& said : fetched(log).events())
    seen += said->text() + " ";
  for (auto& [key, held] : fetched(log).state())
    seen += key + " ";
  for (auto& [key, held] : fetched(log).state().all().items())
    seen += held.dump() + " ";
  seen += fetched(log).key().id;
  BOOST_TEST(seen == R"(one two app:n topic user:name 2 "owls" "ann" s1)");
}

BOOST_AUTO_TEST_CASE(members_of_a_temporary_are_copies) {
  using temporary = session&&;
  static_assert(
    std::is_same_v<decltype(std::declval<temporary>().events()), event_slice>);
  static_assert(std::is_same_v<decltype(std::declval<temporary>().state()),
                               readonly_state>);
  static_assert(
    std::is_same_v<decltype(std::declval<temporary>().key()), session_key>);
}

BOOST_AUTO_TEST_SUITE_END()
