// Owners over a store: what is acknowledged is durable, failures lose and
// double nothing, and others may write to the same place.

#include "../random.hpp"
#include "counting.hpp"
#include "play.hpp"
#include "staged_store.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;
namespace data = boost::unit_test::data;

using step = store_script::step;

BOOST_AUTO_TEST_SUITE(stored)

// -- durable
// -------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(what_was_acknowledged_is_there_in_the_next_runtime) {
  const staged_place place;
  {
    stage first(place.options());
    first.open("s", {{"topic", "owls"}, {"user:name", "Ann"}, {"app:a", 1}});
    BOOST_TEST(first.append(here, counting()) == "ok");
    BOOST_TEST(first.append(here, {{"topic", nullptr}, {"mood", "calm"}})
               == "ok");
  }
  stage second(place.options());
  const auto found = second.fetch(here);
  BOOST_TEST(found.revision() == 2U);
  BOOST_TEST(found.events().size() == 2U);
  BOOST_TEST(found.state().all()
             == json({{"mood", "calm"},
                      {"n", 1},
                      {"user:name", "Ann"},
                      {"user:n", 1},
                      {"app:a", 1},
                      {"app:n", 1}}));
  BOOST_TEST(second.append(here, counting()) == "ok");
  BOOST_TEST(second.fetch(here).revision() == 3U);
  BOOST_TEST(second.user_state() == json({{"name", "Ann"}, {"n", 2}}));
  BOOST_TEST(second.app_state() == json({{"a", 1}, {"n", 2}}));
  BOOST_TEST(place.damage().empty());
}

BOOST_AUTO_TEST_CASE(nothing_is_answered_before_it_is_durable) {
  const staged_place place;
  stage on(place.options());
  on.open();
  // Also when somebody answers too early: the creation is in the store.
  BOOST_TEST(on.fetch(here).revision() == 0U);
  place.script->hold();
  answers<event_ptr> appended;
  answers<session> fetched;
  on.sessions().append_event(here, change({{"a", 1}}), {}, appended.next());
  place.script->arrived.await(2);
  // It is based on what is not durable yet, and so is a refusal.
  on.sessions().get(here, {}, fetched.next());
  on.sessions().append_event(
    here, change({{"b", 1}}), {.expected_revision = 0}, appended.next());
  // Long enough for an answer that waits for nothing.
  BOOST_TEST(!appended.any_within(100ms));
  BOOST_TEST(!fetched.any_within(100ms));
  place.script->release();
  const auto stored = appended.await();
  BOOST_TEST(code_of(stored[0]) == "ok");
  BOOST_TEST(code_of(stored[1]) == "conflict");
  BOOST_TEST(fetched.await()[0]->revision() == 1U);
}

// -- failures
// ------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(a_failed_commit_leaves_no_trace) {
  const staged_place place;
  stage on(place.options());
  on.open();
  BOOST_TEST(on.append(here, counting()) == "ok");
  place.script->next_commits({step::fail});
  BOOST_TEST(on.append(here, counting()) == "store_failed");
  BOOST_TEST(on.state(here) == counted(1));
  BOOST_TEST(on.fetch(here).revision() == 1U);
  BOOST_TEST(on.append(here, counting()) == "ok");
  BOOST_TEST(on.state(here) == counted(2));
  BOOST_TEST(place.damage().empty());
}

BOOST_AUTO_TEST_CASE(a_retry_after_an_unknown_outcome_takes_effect_once) {
  const staged_place place;
  stage on(place.options());
  on.open();
  for (const auto outcome : {step::fail, step::fail_anyway}) {
    const auto id = outcome == step::fail ? "lost" : "written";
    place.script->next_commits({outcome});
    BOOST_TEST(on.append(here, counting(id)) == "store_failed");
    BOOST_TEST(on.append(here, counting(id)) == "ok");
    BOOST_TEST(on.append(here, counting(id)) == "ok");
  }
  BOOST_TEST(on.state(here) == counted(2));
  BOOST_TEST(ids_of(on.events(here))
             == std::vector<std::string>({"lost", "written"}));
}

BOOST_AUTO_TEST_CASE(a_failed_creation_can_be_tried_again) {
  const staged_place place;
  stage on(place.options());
  place.script->next_commits({step::fail});
  const create_request wanted{
    .app = "press", .user = "ann", .id = "s", .state = {{"app:a", 1}}};
  BOOST_TEST(code_of(on.sessions().create(wanted)) == "store_failed");
  BOOST_TEST(code_of(on.sessions().get(here)) == "not_found");
  BOOST_TEST(code_of(on.sessions().create(wanted)) == "ok");
  BOOST_TEST(code_of(on.sessions().create(wanted)) == "already_exists");
  // Written, though nobody was told.
  place.script->next_commits({step::fail_anyway});
  auto other = wanted;
  other.id = "t";
  BOOST_TEST(code_of(on.sessions().create(other)) == "store_failed");
  BOOST_TEST(code_of(on.sessions().create(other)) == "already_exists");
}

BOOST_AUTO_TEST_CASE(what_stands_behind_a_failure_is_decided_again) {
  const staged_place place;
  stage on(place.options());
  on.open();
  on.open("t");
  place.script->hold();
  answers<event_ptr> appended;
  on.sessions().append_event(here, counting("first"), {}, appended.next());
  place.script->arrived.await(3);
  // These are decided on the first one, which will not be written.
  on.sessions().append_event(here, counting("second"), {}, appended.next());
  on.sessions().append_event(
    {"press", "ann", "t"}, counting("third"), {}, appended.next());
  place.script->next_commits({step::fail});
  place.script->release();
  const auto all = appended.await();
  BOOST_TEST(code_of(all[0]) == "store_failed");
  BOOST_TEST(code_of(all[1]) == "ok");
  BOOST_TEST(code_of(all[2]) == "ok");
  BOOST_TEST(on.user_state()["n"] == 2);
  BOOST_TEST(on.app_state()["n"] == 2);
  BOOST_TEST(on.state(here)["n"] == 1);
  BOOST_TEST(place.damage().empty());
}

BOOST_AUTO_TEST_CASE(a_run_sees_no_wider_state_that_was_never_written) {
  const staged_place place;
  stage on(place.options());
  on.open();
  on.open("t");
  place.script->hold();
  answers<event_ptr> appended;
  on.sessions().append_event({"press", "ann", "t"},
                             change({{"user:ghost", 1}, {"app:ghost", 1}}),
                             {},
                             appended.next());
  place.script->arrived.await(3);
  // Its start passes the owners that have decided on the ghost.
  std::string seen;
  const auto look = custom("look", [&](invocation_context& ctx) -> agent_run {
    seen = ctx.state().all().dump();
    co_await ctx.emit(text("done"));
  });
  auto run = on.runtime.run(look, here, "Go!");
  // What is answered behind it has passed the same owners.
  answers<session> fetched;
  on.sessions().get(here, {}, fetched.next());
  place.script->next_commits({step::fail});
  place.script->release();
  BOOST_TEST(code_of(run.wait()) == "ok");
  BOOST_TEST(code_of(appended.await()[0]) == "store_failed");
  BOOST_TEST(code_of(fetched.await()[0]) == "ok");
  BOOST_TEST(seen == "{}");
}

BOOST_AUTO_TEST_CASE(a_store_that_does_not_load_is_an_error_until_it_does) {
  const staged_place place;
  stage(place.options()).open();
  stage on(place.options());
  place.script->fail_loads(true);
  BOOST_TEST(code_of(on.sessions().get(here)) == "store_failed");
  BOOST_TEST(on.append(here, counting()) == "store_failed");
  BOOST_TEST(code_of(on.sessions().remove(here)) == "store_failed");
  BOOST_TEST(code_of(on.sessions().get_app_state("press")) == "store_failed");
  place.script->fail_loads(false);
  BOOST_TEST(on.append(here, counting()) == "ok");
  BOOST_TEST(on.state(here) == counted(1));
}

BOOST_AUTO_TEST_CASE(a_store_that_cannot_say_what_others_did_answers_no_reads) {
  const staged_place place;
  stage on(place.options());
  on.open();
  BOOST_TEST(on.append(here, counting()) == "ok");
  place.script->fail_looks(true);
  auto& sessions = on.sessions();
  BOOST_TEST(code_of(sessions.get(here)) == "store_failed");
  BOOST_TEST(code_of(sessions.get_app_state("press")) == "store_failed");
  BOOST_TEST(code_of(sessions.get_user_state("press", "ann"))
             == "store_failed");
  place.script->fail_looks(false);
  BOOST_TEST(on.state(here) == counted(1));
  BOOST_TEST(code_of(sessions.get_app_state("press")) == "ok");
}

// Nor refuses anything for good: it may have become right meanwhile.
BOOST_AUTO_TEST_CASE(a_store_that_cannot_say_what_others_did_fails_refusals) {
  const staged_place place;
  stage on(place.options());
  on.open();
  place.script->fail_looks(true);
  auto& sessions = on.sessions();
  const session_key missing{"press", "ann", "t"};
  BOOST_TEST(on.append(missing, counting()) == "store_failed");
  BOOST_TEST(
    code_of(sessions.append_event(here, counting(), {.expected_revision = 7}))
    == "store_failed");
  BOOST_TEST(
    code_of(sessions.create({.app = "press", .user = "ann", .id = "s"}))
    == "store_failed");
  BOOST_TEST(
    code_of(on.runtime.run(says("writer", "done"), missing, "Go!").wait())
    == "store_failed");
  place.script->fail_looks(false);
  BOOST_TEST(on.append(missing, counting()) == "not_found");
  BOOST_TEST(
    code_of(on.runtime.run(says("writer", "done"), missing, "Go!").wait())
    == "not_found");
  BOOST_TEST(on.append(here, counting()) == "ok");
  BOOST_TEST(on.state(here) == counted(1));
}

BOOST_AUTO_TEST_CASE(a_failed_removal_removes_nothing) {
  const staged_place place;
  stage on(place.options());
  on.open();
  BOOST_TEST(on.append(here, counting()) == "ok");
  place.script->next_commits({step::fail});
  BOOST_TEST(code_of(on.sessions().remove(here)) == "store_failed");
  BOOST_TEST(on.state(here) == counted(1));
  place.script->next_commits({step::fail});
  BOOST_TEST(code_of(on.sessions().remove_user("press", "ann"))
             == "store_failed");
  BOOST_TEST(on.state(here) == counted(1));
  BOOST_TEST(on.sessions().remove_user("press", "ann").value());
  BOOST_TEST(code_of(on.sessions().get(here)) == "not_found");
  BOOST_TEST(on.app_state() == json({{"n", 1}}));
}

// It was counted with the session's creation, so its id was kept for the next
// number.
BOOST_AUTO_TEST_CASE(an_event_sent_right_behind_its_creation_is_the_first_one) {
  const staged_place place;
  stage on(place.options());
  answers<session> created;
  answers<event_ptr> appended;
  on.sessions().create(
    {.app = "press", .user = "ann", .id = "s", .state = {{"k", 0}}},
    created.next());
  on.sessions().append_event(here,
                             change({{"k", 1}}, "once"),
                             {.expected_revision = 0},
                             appended.next());
  BOOST_TEST(created.await().front().value().state().all() == json({{"k", 0}}));
  BOOST_TEST(code_of(appended.await().front()) == "ok");
  BOOST_TEST(on.append(here, change({{"k", 1}}, "once")) == "ok");
  BOOST_TEST(on.fetch(here).revision() == 1U);
}

// Sessions of a user that is removed ended before that was durable, and told
// so.
BOOST_AUTO_TEST_CASE(nobody_hears_of_a_removed_user_before_it_is_durable) {
  const staged_place place;
  stage on(place.options());
  on.open();
  place.script->hold();
  answers<event_ptr> appended;
  const auto append = [&] {
    on.sessions().append_event(here, counting(), {}, appended.next());
  };
  append();
  place.script->arrived.await(2);
  place.script->each_commit([] { return step::fail; });
  answers<bool> removed;
  on.sessions().remove_user("press", "ann", removed.next());
  for (int count = 0; count < 500; ++count)
    append();
  place.script->release();
  BOOST_TEST(code_of(removed.await().front()) == "store_failed");
  for (const auto& each : appended.await())
    BOOST_TEST(code_of(each) == "store_failed");
  place.script->each_commit(nullptr);
  BOOST_TEST(on.append(here, counting()) == "ok");
}

BOOST_DATA_TEST_CASE(random_failures_lose_and_double_nothing,
                     data::xrange(20),
                     seed) {
  const staged_place place;
  auto chance
    = std::make_shared<random_source>(static_cast<std::uint64_t>(seed));
  constexpr std::size_t threads = 4;
  constexpr int each = 60;
  std::atomic<int> total{0};
  {
    auto options = place.options();
    options.live_sessions_max = 2;
    stage on(std::move(options));
    for (std::size_t index = 0; index < 6; ++index)
      on.open("s" + std::to_string(index));
    place.script->each_commit([chance] {
      const auto drawn = chance->below(10);
      return drawn == 0   ? step::fail
             : drawn == 1 ? step::fail_anyway
                          : step::work;
    });
    on_threads(threads, [&](std::size_t thread) {
      for (int number = 0; number < each; ++number) {
        const session_key key{
          "press",
          "ann",
          "s"
            + std::to_string((thread + static_cast<std::size_t>(number)) % 6)};
        const auto id = std::to_string(thread) + "-" + std::to_string(number);
        // With the same id until it is acknowledged.
        while (on.append(key, counting(id)) != "ok") {
        }
        ++total;
      }
    });
    place.script->each_commit(nullptr);
    BOOST_TEST(on.app_state()["n"] == total.load());
    BOOST_TEST(on.user_state()["n"] == total.load());
  }
  std::set<std::string> ids;
  stage again(place.options());
  for (const auto& row : again.rows()) {
    const auto found = again.fetch(row.key());
    for (const auto& id : ids_of(found.events()))
      BOOST_TEST(ids.insert(id).second);
    BOOST_TEST(found.state().all()["n"]
               == static_cast<int>(found.events().size()));
  }
  BOOST_TEST(static_cast<int>(ids.size()) == total.load());
  BOOST_TEST(place.damage().empty());
}

// -- removing, listing
// ---------------------------------------------------------

BOOST_AUTO_TEST_CASE(a_removed_session_is_gone_and_its_traces_stay) {
  const staged_place place;
  {
    stage on(place.options());
    on.open();
    BOOST_TEST(on.append(here, counting()) == "ok");
    BOOST_TEST(on.sessions().remove(here).value());
    BOOST_TEST(!on.sessions().remove(here).value());
    BOOST_TEST(on.append(here, counting()) == "not_found");
    on.open("s", {{"anew", 1}});
    BOOST_TEST(on.fetch(here).events().empty());
  }
  stage again(place.options());
  BOOST_TEST(again.state(here)
             == json({{"anew", 1}, {"user:n", 1}, {"app:n", 1}}));
  BOOST_TEST(place.damage().empty());
}

BOOST_AUTO_TEST_CASE(a_list_shows_what_is_stored_page_by_page) {
  const staged_place place;
  auto options = place.options();
  options.live_sessions_max = 3;
  stage on(std::move(options));
  std::set<std::string> opened;
  for (int number = 0; number < 25; ++number)
    opened.insert(
      on.open("s" + std::to_string(number), {{"user:last", number}}).id);
  std::set<std::string> seen;
  std::string cursor;
  do {
    const auto page
      = on.sessions()
          .list({.app = "press", .user = "ann", .limit = 4, .cursor = cursor})
          .value();
    for (const auto& row : page.sessions) {
      BOOST_TEST(seen.insert(row.key().id).second);
      BOOST_TEST(row.state().all() == json({{"user:last", 24}}));
    }
    cursor = page.next_cursor;
  } while (!cursor.empty());
  BOOST_TEST(seen == opened);
}

BOOST_AUTO_TEST_CASE(temp_keys_reach_no_store) {
  const staged_place place;
  stage on(place.options());
  on.open("s", {{"temp:canary", "sparrow-0"}});
  BOOST_TEST(on.append(here, {{"temp:canary", "sparrow-1"}, {"a", 1}}) == "ok");
  const auto leak = custom("leak", [](invocation_context& ctx) -> agent_run {
    ctx.state().set("temp:canary", "sparrow-2");
    ctx.state().set("b", 1);
    co_await ctx.emit(text("done"));
  });
  BOOST_TEST(code_of(on.runtime.run(leak, here, "Go!").wait()) == "ok");
  const auto kept = make_memory_store(place.place);
  const auto session = kept->load_session(here, {}).value();
  BOOST_REQUIRE(session);
  BOOST_TEST(session->events.size() == 3U);
  for (const auto& said : session->events)
    BOOST_TEST(to_json(*said).dump().find("sparrow") == std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
