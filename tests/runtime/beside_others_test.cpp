// Several runtimes on one place, like several processes on one store: an answer
// of one holds for all.

#include "agent_fixture.hpp"
#include "counting.hpp"
#include "staged_store.hpp"
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(beside_others, *boost::unit_test::timeout(120))

BOOST_AUTO_TEST_CASE(what_another_has_written_is_seen_at_once) {
  const staged_place place;
  runtime_fixture one(place.options());
  runtime_fixture other(place.options());
  one.open();
  BOOST_TEST(other.append(here, counting()) == "ok");
  BOOST_TEST(one.state(here) == counted(1));
  BOOST_TEST(one.append(here, counting()) == "ok");
  BOOST_TEST(other.state(here) == counted(2));
  BOOST_TEST(other.user_state() == json({{"n", 2}}));
  BOOST_TEST(one.append(here, counting()) == "ok");
  BOOST_TEST(other.app_state() == json({{"n", 3}}));
  // A refusal also looks for changes of other runtimes first.
  BOOST_TEST(
    code_of(other.sessions()
              .append_event(here, change({{"a", 1}}), {.expected_revision = 3})
              .get())
    == "ok");
  BOOST_TEST(
    code_of(one.sessions()
              .append_event(here, change({{"a", 2}}), {.expected_revision = 4})
              .get())
    == "ok");
  BOOST_TEST(other.fetch(here).revision() == 5U);
}

BOOST_AUTO_TEST_CASE(
  a_session_deleted_elsewhere_while_it_is_read_is_not_there) {
  const staged_place place;
  auto options = place.options();
  options.events_kept = 1;
  options.live_sessions_max = 1;
  runtime_fixture other(place.options());
  other.open();
  for (int count = 0; count < 100; ++count)
    BOOST_TEST(other.append(here, counting()) == "ok");
  runtime_fixture one(std::move(options));
  place.script->on_event_load
    = [&other] { static_cast<void>(other.sessions().remove(here).get()); };
  BOOST_TEST(code_of(one.sessions().get(here).get()) == "not_found");
}

BOOST_AUTO_TEST_CASE(a_session_created_or_deleted_elsewhere_is_so_here) {
  const staged_place place;
  runtime_fixture one(place.options());
  runtime_fixture other(place.options());
  BOOST_TEST(code_of(other.sessions().get(here).get()) == "not_found");
  one.open();
  BOOST_TEST(other.fetch(here).revision() == 0U);
  BOOST_TEST(code_of(other.sessions().create({"press", "ann", "s"}).get())
             == "already_exists");
  BOOST_TEST(other.sessions().remove(here).value());
  BOOST_TEST(one.append(here, counting()) == "not_found");
  BOOST_TEST(!one.sessions().remove(here).value());
  BOOST_TEST(code_of(one.sessions().get(here).get()) == "not_found");
  one.open("s", {{"anew", true}});
  BOOST_TEST(other.state(here) == json({{"anew", true}}));
}

// The revision is the same, but the history is another one; a decision on the
// old history is made again.
BOOST_AUTO_TEST_CASE(a_session_made_again_elsewhere_is_another_one) {
  const staged_place place;
  runtime_fixture one(place.options());
  runtime_fixture other(place.beside());
  one.open();
  BOOST_TEST(one.append(here, change({{"n", 5}, {"user:n", 5}, {"old", true}}))
             == "ok");
  const auto seen = place.script->arrived.count();
  place.script->hold();
  answers<event_ptr> appended;
  one.sessions().append_event(here, counting()).then(appended.next());
  // The commit has already looked for changes of other runtimes.
  place.script->arrived.await(seen + 1);
  BOOST_TEST(other.sessions().remove_user("press", "ann").value());
  other.open();
  BOOST_TEST(other.append(here, change({{"n", 1}, {"user:n", 1}})) == "ok");
  place.script->release();
  BOOST_TEST(code_of(appended.await()[0]) == "ok");
  BOOST_TEST(one.state(here) == json({{"n", 2}, {"user:n", 2}, {"app:n", 1}}));
  BOOST_TEST(one.user_state() == json({{"n", 2}}));
  BOOST_TEST(other.fetch(here).revision() == 2U);
  BOOST_TEST(place.damage().empty());
}

// Two removals of one user at the same time are no conflict, and other writes
// are not affected.
BOOST_AUTO_TEST_CASE(a_user_removed_elsewhere_can_be_removed_here) {
  const staged_place place;
  runtime_fixture one(place.options());
  runtime_fixture other(place.beside());
  one.open();
  const auto bobs = one.open("b", json::object(), "bob");
  const auto seen = place.script->arrived.count();
  place.script->hold();
  answers<bool> removed;
  answers<event_ptr> appended;
  one.sessions().remove_user("press", "ann").then(removed.next());
  place.script->arrived.await(seen + 1);
  BOOST_TEST(other.sessions().remove_user("press", "ann").value());
  one.sessions().append_event(bobs, counting()).then(appended.next());
  place.script->release();
  BOOST_TEST(code_of(removed.await()[0]) == "ok");
  BOOST_TEST(code_of(appended.await()[0]) == "ok");
  BOOST_TEST(code_of(one.sessions().get(here).get()) == "not_found");
  one.open();
  BOOST_TEST(one.append(here, counting()) == "ok");
  BOOST_TEST(one.user_state() == json({{"n", 1}}));
}

BOOST_AUTO_TEST_CASE(what_stands_behind_a_removal_elsewhere_is_answered) {
  const staged_place place;
  runtime_fixture one(place.options());
  runtime_fixture other(place.options());
  one.open();
  BOOST_TEST(other.sessions().remove(here).value());
  answers<bool> removed;
  answers<event_ptr> appended;
  one.sessions().remove(here).then(removed.next());
  one.sessions().append_event(here, counting()).then(appended.next());
  BOOST_TEST(!removed.await()[0].value());
  BOOST_TEST(code_of(appended.await()[0]) == "not_found");
}

BOOST_AUTO_TEST_CASE(old_events_of_a_session_removed_elsewhere_are_not_found) {
  const staged_place place;
  auto options = place.options();
  options.events_kept = 4;
  runtime_fixture one(std::move(options));
  runtime_fixture other(place.options());
  one.open();
  for (int number = 0; number < 200; ++number)
    BOOST_TEST_REQUIRE(one.append(here, counting()) == "ok");
  BOOST_TEST(other.sessions().remove(here).value());
  BOOST_TEST(code_of(one.sessions().get(here).get()) == "not_found");
}

BOOST_AUTO_TEST_CASE(an_id_that_another_used_is_joined) {
  const staged_place place;
  runtime_fixture one(place.options());
  runtime_fixture other(place.options());
  one.open();
  BOOST_TEST(other.fetch(here).revision() == 0U);
  BOOST_TEST(one.append(here, counting("e")) == "ok");
  BOOST_TEST(other.append(here, counting("e")) == "ok");
  BOOST_TEST(other.append(here, change({{"else", 1}}, "e")) == "conflict");
  BOOST_TEST(one.state(here) == counted(1));
}

BOOST_AUTO_TEST_CASE(four_runtimes_on_one_place_lose_nothing) {
  const staged_place place;
  constexpr std::size_t runtimes = 4;
  constexpr int each = 100;
  std::vector<std::unique_ptr<runtime_fixture>> on;
  for (std::size_t index = 0; index < runtimes; ++index)
    on.push_back(std::make_unique<runtime_fixture>(place.options()));
  on[0]->open("s");
  on[0]->open("t");
  on_threads(runtimes * 2, [&](std::size_t thread) {
    auto& own = *on[thread % runtimes];
    for (int number = 0; number < each; ++number) {
      const auto key = session_key{"press", "ann", number % 2 == 0 ? "s" : "t"};
      const auto outcome = own.append(
        key, number % 5 == 4 ? change({{"last", number}}) : counting());
      if (outcome != "ok")
        throw std::runtime_error(outcome);
    }
  });
  const int total = static_cast<int>(runtimes) * 2 * each * 4 / 5;
  for (const auto& own : on) {
    BOOST_TEST(own->app_state()["n"] == total);
    BOOST_TEST(own->user_state()["n"] == total);
    BOOST_TEST(own->fetch({"press", "ann", "s"}).revision()
                 + own->fetch({"press", "ann", "t"}).revision()
               == static_cast<std::uint64_t>(runtimes) * 2 * each);
  }
  BOOST_TEST(place.damage().empty());
}

// The state shown beside the written one may change between the look at other
// runtimes and the commit.
BOOST_AUTO_TEST_CASE(a_creation_shows_what_was_written_before_it) {
  const staged_place place;
  runtime_fixture one(place.options());
  runtime_fixture other(place.beside());
  one.open();
  const auto seen = place.script->arrived.count();
  place.script->hold();
  answers<session> created;
  one.sessions().create({"press", "ann", "t"}).then(created.next());
  place.script->arrived.await(seen + 1);
  BOOST_TEST(other.append(here, counting()) == "ok");
  BOOST_TEST(code_of(other.sessions().get({"press", "ann", "t"}).get())
             == "not_found");
  place.script->release();
  BOOST_TEST(created.await()[0].value().state().all()
             == json({{"user:n", 1}, {"app:n", 1}}));
}

// A retry waits for the answer to the first sending, unless that one is decided
// again.
BOOST_AUTO_TEST_CASE(a_retry_does_not_share_a_conflict_that_is_not_its_own) {
  const staged_place place;
  runtime_fixture other(place.beside());
  const auto elsewhere = other.open("t");
  other.open();
  gate loading;
  runtime_fixture one(place.options());
  BOOST_TEST(one.fetch(elsewhere).revision() == 0U);
  place.script->on_session_load = [&loading] { loading.pass(); };
  answers<event_ptr> appended;
  one.sessions()
    .append_event(here, change({{"a", 1}}, "e"), {.expected_revision = 0})
    .then(appended.next());
  one.sessions()
    .append_event(here, change({{"a", 1}}, "e"))
    .then(appended.next());
  // The `get` is answered after both appends have passed the same owners; both
  // wait for the load.
  loading.await_arrival();
  BOOST_TEST(code_of(one.sessions().get(elsewhere).get()) == "ok");
  const auto seen = place.script->arrived.count();
  place.script->hold();
  loading.open();
  place.script->arrived.await(seen + 1);
  BOOST_TEST(other.append(here, change({{"b", 1}})) == "ok");
  place.script->release();
  const auto answered = appended.await();
  BOOST_TEST(code_of(answered[0]) == "conflict");
  BOOST_TEST(code_of(answered[1]) == "ok");
  BOOST_TEST(one.state(here) == json({{"a", 1}, {"b", 1}}));
}

// An append waits for a session that does not exist, and another runtime
// creates the session meanwhile.
BOOST_AUTO_TEST_CASE(a_run_finds_what_was_created_before_it) {
  const staged_place place;
  gate looking;
  runtime_fixture one(place.options());
  runtime_fixture other(place.beside());
  const auto elsewhere = one.open("t");
  place.script->on_looked = [&looking] { looking.pass(); };
  answers<event_ptr> appended;
  one.sessions().append_event(here, counting()).then(appended.next());
  looking.await_arrival();
  other.open();
  auto run = one.runtime.run(says("writer", "done"), here, "Go!");
  // Gives the run time to reach the session.
  for (int count = 0; count < 100; ++count)
    BOOST_TEST(other.append(elsewhere, counting()) == "ok");
  looking.open();
  BOOST_TEST(code_of(appended.await()[0]) == "not_found");
  BOOST_TEST(code_of(run.wait().get()) == "ok");
  BOOST_TEST(one.fetch(here).revision() == 2U);
}

// The first of two runs of one thread is being decided again when the second
// one starts.
BOOST_AUTO_TEST_CASE(runs_of_what_was_created_elsewhere_keep_their_order) {
  const staged_place place;
  gate looking;
  gate loading;
  runtime_fixture one(place.options());
  runtime_fixture other(place.beside());
  const auto elsewhere = one.open("t");
  place.script->on_look = [&looking] { looking.pass(); };
  auto first = one.runtime.run(says("writer", "done"), here, "First");
  // The session does not exist, and the run is about to be refused.
  looking.await_arrival();
  other.open();
  place.script->on_session_load = [&loading] { loading.pass(); };
  looking.open();
  loading.await_arrival();
  auto second = one.runtime.run(says("writer", "done"), here, "Second");
  // The `get` is answered after the second run has passed the same owners.
  BOOST_TEST(code_of(one.sessions().get(elsewhere).get()) == "ok");
  loading.open();
  BOOST_TEST(code_of(first.wait().get()) == "ok");
  BOOST_TEST(code_of(second.wait().get()) == "ok");
  BOOST_TEST(one.texts(here)
             == std::vector<std::string>({"First", "done", "Second", "done"}));
}

BOOST_AUTO_TEST_SUITE_END()
