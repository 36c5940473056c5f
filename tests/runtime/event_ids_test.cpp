// An event id takes effect once, for events of any age, in memory or in the
// store.

#include "counting.hpp"
#include "staged_store.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(event_ids)

namespace {

// A session of 60 events, of which few events and ids are kept in memory.
struct long_session {
  explicit long_session(int events = 60) {
    runtime_fixture on(options());
    on.open();
    for (int number = 0; number < events; ++number)
      BOOST_TEST_REQUIRE(on.append(here, event_of(number)) == "ok");
  }

  static event event_of(int number) {
    return change({{"a", number}}, "e" + std::to_string(number));
  }

  runtime_options options() const {
    auto few = place.options();
    few.remembered_ids = 8;
    few.events_kept = 4;
    return few;
  }

  const staged_place place;
};

} // namespace

BOOST_FIXTURE_TEST_CASE(each_event_that_is_sent_again_takes_effect_once,
                        long_session) {
  runtime_fixture on(options());
  for (int number = 0; number < 60; ++number)
    BOOST_TEST(on.append(here, event_of(number)) == "ok");
  BOOST_TEST(on.append(here, change({{"a", 77}}, "e3")) == "conflict");
  BOOST_TEST(on.append(here, change({{"a", 77}}, "e58")) == "conflict");
  BOOST_TEST(on.fetch(here).revision() == 60U);
  BOOST_TEST(on.fetch(here).state().all() == json({{"a", 59}}));
}

BOOST_FIXTURE_TEST_CASE(a_retry_loads_no_other_event, long_session) {
  runtime_fixture on(options());
  const auto looks = place.script->id_looks.count();
  BOOST_TEST(on.append(here, event_of(2)) == "ok");
  BOOST_TEST(place.script->event_loads.count() == 0U);
  BOOST_TEST(place.script->id_looks.count() == looks + 1);
}

BOOST_FIXTURE_TEST_CASE(ids_that_the_runtime_makes_are_not_looked_up,
                        long_session) {
  runtime_fixture on(options());
  const auto looks = place.script->id_looks.count();
  for (int number = 0; number < 40; ++number)
    BOOST_TEST(on.append(here, change({{"b", number}})) == "ok");
  BOOST_TEST(place.script->id_looks.count() == looks);
  BOOST_TEST(on.fetch(here).revision() == 100U);
}

// After a filter of all ids is made, a new id needs no look-up in the store.
BOOST_FIXTURE_TEST_CASE(new_ids_are_soon_looked_up_no_more, long_session) {
  runtime_fixture on(options());
  for (int number = 60; number < 400; ++number)
    BOOST_TEST_REQUIRE(on.append(here, event_of(number)) == "ok");
  BOOST_TEST(place.script->id_looks.count() < 60U);
  const auto looks = place.script->id_looks.count();
  for (int number = 0; number < 60; ++number)
    BOOST_TEST(on.append(here, event_of(number)) == "ok");
  BOOST_TEST(place.script->id_looks.count() >= looks + 60);
  BOOST_TEST(on.fetch(here).revision() == 400U);
}

// Each event of the other program takes a revision for which the filter has an
// event of this runtime. Its id must be found all the same.
BOOST_FIXTURE_TEST_CASE(the_filter_knows_the_events_of_other_programs,
                        long_session) {
  runtime_fixture on(options());
  runtime_fixture other(place.beside());
  for (int number = 60; number < 400; ++number)
    BOOST_TEST_REQUIRE(on.append(here, event_of(number)) == "ok");
  const auto looks = place.script->id_looks.count();
  for (int round = 0; round < 20; ++round) {
    const auto theirs = 1'000 + round;
    BOOST_TEST(other.append(here, event_of(theirs)) == "ok");
    BOOST_TEST(on.append(here, change({{"b", round}})) == "ok");
    for (int own = 0; own < 10; ++own)
      BOOST_TEST(on.append(here, change({{"c", own}})) == "ok");
    BOOST_TEST(on.append(here, event_of(theirs)) == "ok");
  }
  BOOST_TEST(place.script->id_looks.count() >= looks + 20);
  BOOST_TEST(on.fetch(here).revision() == 400U + 20 * 12);
}

BOOST_FIXTURE_TEST_CASE(retries_that_wait_together_are_one_question,
                        long_session) {
  const auto looks = place.script->id_looks.count();
  // They come while the session loads.
  gate load;
  place.script->on_session_load = [&load] { load.pass(); };
  runtime_fixture on(options());
  tally answered;
  std::atomic<int> failed = 0;
  for (int number = 0; number < 40; ++number)
    on.sessions()
      .append_event(here, event_of(number))
      .then([&](const result<event_ptr>& outcome) {
        failed += !outcome;
        answered.add();
      });
  load.await_arrival();
  load.open();
  answered.await(40);
  BOOST_TEST(failed == 0);
  BOOST_TEST(place.script->id_looks.count() == looks + 1);
  BOOST_TEST(on.fetch(here).revision() == 60U);
}

BOOST_FIXTURE_TEST_CASE(events_that_were_found_do_not_stay_in_memory,
                        long_session) {
  runtime_fixture on(options());
  for (int number = 0; number < 20; ++number)
    BOOST_TEST(on.append(here, event_of(number)) == "ok");
  // The session may still hold the found event when it answers; two reads make
  // sure that it has finished.
  on.fetch(here);
  on.fetch(here);
  const auto found = place.script->found();
  BOOST_TEST(found.size() >= 20U);
  for (const auto& each : found)
    BOOST_TEST(each.expired());
}

// The runtime cannot tell whether the event was stored, so it does not store
// it.
BOOST_FIXTURE_TEST_CASE(a_retry_fails_while_the_store_does_not_answer,
                        long_session) {
  runtime_fixture on(options());
  BOOST_TEST(on.append(here, change({{"b", 1}})) == "ok");
  place.script->fail_loads(true);
  BOOST_TEST(on.append(here, event_of(5)) == "store_failed");
  place.script->fail_loads(false);
  BOOST_TEST(on.append(here, event_of(5)) == "ok");
  BOOST_TEST(on.fetch(here).revision() == 61U);
}

// The filter of all ids is requested while a batch has accepted events that are
// not in the store yet.
BOOST_DATA_TEST_CASE_F(long_session,
                       a_filter_has_what_is_accepted_while_it_is_made,
                       boost::unit_test::data::xrange(20),
                       size) {
  runtime_fixture on(options());
  int next = 60;
  tally answered;
  for (int round = 0; round < 12; ++round) {
    for (int count = 0; count < 2 + 3 * size; ++count)
      on.sessions()
        .append_event(here, event_of(next++))
        .then([&](const result<event_ptr>&) { answered.add(); });
    answered.await(static_cast<std::size_t>(next - 60));
  }
  for (int number = 60; number < next; ++number)
    BOOST_TEST(on.append(here, event_of(number)) == "ok");
  BOOST_TEST(on.fetch(here).revision() == static_cast<std::uint64_t>(next));
}

// Both runtimes decide event 71, and the other one writes it first.
BOOST_FIXTURE_TEST_CASE(a_filter_has_what_others_wrote_in_place_of_own_events,
                        long_session) {
  runtime_fixture on(options());
  for (int number = 60; number < 70; ++number)
    BOOST_TEST_REQUIRE(on.append(here, event_of(number)) == "ok");
  runtime_fixture beside(place.beside());
  place.script->hold();
  const auto arrived = place.script->arrived.count();
  tally answered;
  on.sessions()
    .append_event(here, change({{"own", 1}}, "own"))
    .then([&](const result<event_ptr>&) { answered.add(); });
  place.script->arrived.await(arrived + 1);
  BOOST_TEST(beside.append(here, change({{"other", 1}}, "other")) == "ok");
  place.script->release();
  answered.await(1);
  for (int number = 0; number < 20; ++number)
    BOOST_TEST(on.append(here, change({{"b", number}})) == "ok");
  BOOST_TEST(on.append(here, change({{"other", 1}}, "other")) == "ok");
  BOOST_TEST(on.fetch(here).revision() == 92U);
}

BOOST_AUTO_TEST_SUITE_END()
