// The samples of docs/time_travel.md.
//
// structure.pages_show_compiled_code compares the page with this source.

#include "troupe/core/session_diff.hpp"

#include "page_fixture.hpp"

#include <chrono>
#include <string>

BOOST_FIXTURE_TEST_SUITE(time_travel_page, troupe::testing::page_fixture)

BOOST_AUTO_TEST_CASE(a_session_as_it_was_and_its_differences) {
  sessions.state(key).set("topic", "owls").value(); // Revision 1.
  sessions.state(key).set("topic", "bats").value(); // Revision 2.
  const auto past = sessions.get(key, {.at = 1}).value();
  std::cout << past.state().get<std::string>("topic"); // owls
  std::cout << past.events().size();                   // 1
  std::cout << past.is_earlier();                      // true
  const auto now = sessions.get(key).value();
  const auto found = troupe::diff(past, now);
  for (const auto& each : found.keys)
    std::cout << each.key << ": " << each.before.value_or(nullptr) << " -> "
              << each.after.value_or(nullptr) << '\n';
  for (const auto& event : found.after) // Those that only `now` has.
    std::cout << event->author << ": " << event->text() << '\n';
  BOOST_TEST(printed.text() == "owls11topic: \"owls\" -> \"bats\"\nsystem: \n");
}

BOOST_AUTO_TEST_CASE(going_back) {
  sessions.state(key).set("topic", "owls").value();
  sessions.state(key).set("topic", "bats").value();
  sessions.state(key).set("topic", "cats").value(); // Revision 3.
  const auto gone_back
    = sessions.rewind(key, troupe::rewind_target::to(1)).value();
  const auto held = sessions.get(key).value();
  std::cout << held.state().get<std::string>("topic"); // owls
  std::cout << held.events().size();                   // 4: nothing is removed.
  std::cout << held.events().live().size();            // 1
  BOOST_TEST(printed.text() == "owls41");
  BOOST_TEST(gone_back.to == 1U);
}

BOOST_AUTO_TEST_CASE(undoing_operations) {
  const auto other = sessions.create({"my_app", "bob", "s2"}).value().key();
  sessions.state(key).set("topic", "owls").value();
  sessions.state(key).add("app:visits", 2).value();
  sessions.state(other).add("app:visits", 5).value();
  const auto undone
    = sessions.rewind(key, troupe::rewind_target::to(1), {.compensate = true})
        .value();
  std::cout << undone.compensated_keys.front(); // app:visits
  const auto left = sessions.get(key).value();
  std::cout << left.state().get<int>("app:visits"); // 5
  BOOST_TEST(printed.text() == "app:visits5");
}

BOOST_AUTO_TEST_CASE(the_same_past_and_another_future) {
  sessions.state(key).set("topic", "owls").value();
  sessions.state(key).set("topic", "bats").value();
  const auto fork = sessions.fork(key, {.at = 1}, "retry").value();
  std::cout << fork.state().get<std::string>("topic");     // owls
  sessions.state(fork.key()).set("topic", "cats").value(); // Not in the parent.
  const auto all = sessions.get(fork.key()).value();
  std::cout << all.events().size(); // 3: one shared, the fork's origin, one own
  BOOST_TEST(printed.text() == "owls3");
  BOOST_TEST(sessions.get(key).value().state().get<std::string>("topic")
             == "bats");
}

BOOST_AUTO_TEST_CASE(deleting_old_events) {
  sessions.state(key).set("topic", "owls").value();
  sessions.state(key).set("topic", "bats").value(); // Revision 2.
  const auto trimmed = sessions.trim(key, 1).value();
  std::cout << trimmed.removed; // 1
  const auto left = sessions.get(key).value();
  std::cout << left.first_revision();                  // 1
  std::cout << left.events().size();                   // 1
  std::cout << left.state().get<std::string>("topic"); // bats
  const auto gone = sessions.get(key, {.at = 0}).get();
  std::cout << to_string(gone.error().code()); // gone
  BOOST_TEST(printed.text() == "111batsgone");
}

BOOST_AUTO_TEST_CASE(deleting_events_by_their_age) {
  sessions.state(key).set("topic", "owls").value();
  const auto now = std::chrono::time_point_cast<troupe::timestamp::duration>(
    std::chrono::system_clock::now());
  const auto removed
    = sessions.expire_events({"my_app", now - std::chrono::days(90)}).value();
  std::cout << removed; // The number of events that were older.
  BOOST_TEST(printed.text() == "0");
}

BOOST_AUTO_TEST_SUITE_END()
