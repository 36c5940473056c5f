// Owners over a store: acknowledged events are durable, failures lose and
// double nothing, and other runtimes may write to the same place.

#include "../random.hpp"
#include "agent_fixture.hpp"
#include "counting.hpp"
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

// -- durable ----

BOOST_AUTO_TEST_CASE(what_was_acknowledged_is_there_in_the_next_runtime) {
  const staged_place place;
  {
    runtime_fixture first(place.options());
    first.open("s", {{"topic", "owls"}, {"user:name", "Ann"}, {"app:a", 1}});
    BOOST_TEST(first.append(here, counting()) == "ok");
    BOOST_TEST(first.append(here, {{"topic", nullptr}, {"mood", "calm"}})
               == "ok");
  }
  runtime_fixture second(place.options());
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
  runtime_fixture on(place.options());
  on.open();
  // The read makes sure that the creation is in the store, even if answers come
  // too early.
  BOOST_TEST(on.fetch(here).revision() == 0U);
  place.script->hold();
  answers<event_ptr> appended;
  answers<session> fetched;
  on.sessions().append_event(here, change({{"a", 1}})).then(appended.next());
  place.script->arrived.await(2);
  // The read is based on an event that is not durable yet, and so is the
  // refusal.
  on.sessions().get(here).then(fetched.next());
  on.sessions()
    .append_event(here, change({{"b", 1}}), {.expected_revision = 0})
    .then(appended.next());
  // Long enough for an answer that does not wait for the store.
  BOOST_TEST(!appended.any_within(100ms));
  BOOST_TEST(!fetched.any_within(100ms));
  place.script->release();
  const auto stored = appended.await();
  BOOST_TEST(code_of(stored[0]) == "ok");
  BOOST_TEST(code_of(stored[1]) == "conflict");
  BOOST_TEST(fetched.await()[0]->revision() == 1U);
}

// -- failures ----

BOOST_AUTO_TEST_CASE(a_failed_commit_leaves_no_trace) {
  const staged_place place;
  runtime_fixture on(place.options());
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
  runtime_fixture on(place.options());
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
  runtime_fixture on(place.options());
  place.script->next_commits({step::fail});
  create_request wanted("press", "ann", "s");
  wanted.state = {{"app:a", 1}};
  BOOST_TEST(code_of(on.sessions().create(wanted).get()) == "store_failed");
  BOOST_TEST(code_of(on.sessions().get(here).get()) == "not_found");
  BOOST_TEST(code_of(on.sessions().create(wanted).get()) == "ok");
  BOOST_TEST(code_of(on.sessions().create(wanted).get()) == "already_exists");
  // The session is written although the call failed.
  place.script->next_commits({step::fail_anyway});
  auto other = wanted;
  other.id = "t";
  BOOST_TEST(code_of(on.sessions().create(other).get()) == "store_failed");
  BOOST_TEST(code_of(on.sessions().create(other).get()) == "already_exists");
}

BOOST_AUTO_TEST_CASE(what_stands_behind_a_failure_is_decided_again) {
  const staged_place place;
  runtime_fixture on(place.options());
  on.open();
  on.open("t");
  place.script->hold();
  answers<event_ptr> appended;
  on.sessions().append_event(here, counting("first")).then(appended.next());
  place.script->arrived.await(3);
  // These are decided on top of the first event, whose commit fails.
  on.sessions().append_event(here, counting("second")).then(appended.next());
  on.sessions()
    .append_event({"press", "ann", "t"}, counting("third"))
    .then(appended.next());
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
  runtime_fixture on(place.options());
  on.open();
  on.open("t");
  place.script->hold();
  answers<event_ptr> appended;
  on.sessions()
    .append_event({"press", "ann", "t"},
                  change({{"user:ghost", 1}, {"app:ghost", 1}}))
    .then(appended.next());
  place.script->arrived.await(3);
  // The run starts through the owners that have decided on the ghost.
  std::string seen;
  const auto look = custom("look", [&](invocation_context& ctx) -> agent_run {
    seen = ctx.state().all().dump();
    co_await ctx.emit(text("done"));
  });
  auto run = on.runtime.run(look, here, "Go!");
  // The `get` is answered after the run has passed the same owners.
  answers<session> fetched;
  on.sessions().get(here).then(fetched.next());
  place.script->next_commits({step::fail});
  place.script->release();
  BOOST_TEST(code_of(run.wait().get()) == "ok");
  BOOST_TEST(code_of(appended.await()[0]) == "store_failed");
  BOOST_TEST(code_of(fetched.await()[0]) == "ok");
  BOOST_TEST(seen == "{}");
}

BOOST_AUTO_TEST_CASE(a_store_that_does_not_load_is_an_error_until_it_does) {
  const staged_place place;
  runtime_fixture(place.options()).open();
  runtime_fixture on(place.options());
  place.script->fail_loads(true);
  BOOST_TEST(code_of(on.sessions().get(here).get()) == "store_failed");
  BOOST_TEST(on.append(here, counting()) == "store_failed");
  BOOST_TEST(code_of(on.sessions().remove(here).get()) == "store_failed");
  BOOST_TEST(code_of(on.sessions().app_state("press").get()) == "store_failed");
  place.script->fail_loads(false);
  BOOST_TEST(on.append(here, counting()) == "ok");
  BOOST_TEST(on.state(here) == counted(1));
}

BOOST_AUTO_TEST_CASE(a_store_that_cannot_say_what_others_did_answers_no_reads) {
  const staged_place place;
  runtime_fixture on(place.options());
  on.open();
  BOOST_TEST(on.append(here, counting()) == "ok");
  place.script->fail_looks(true);
  auto& sessions = on.sessions();
  BOOST_TEST(code_of(sessions.get(here).get()) == "store_failed");
  BOOST_TEST(code_of(sessions.app_state("press").get()) == "store_failed");
  BOOST_TEST(code_of(sessions.user_state("press", "ann").get())
             == "store_failed");
  place.script->fail_looks(false);
  BOOST_TEST(on.state(here) == counted(1));
  BOOST_TEST(code_of(sessions.app_state("press").get()) == "ok");
}

// A refusal fails, too: the refused call may have become valid meanwhile.
BOOST_AUTO_TEST_CASE(a_store_that_cannot_say_what_others_did_fails_refusals) {
  const staged_place place;
  runtime_fixture on(place.options());
  on.open();
  place.script->fail_looks(true);
  auto& sessions = on.sessions();
  const session_key missing{"press", "ann", "t"};
  BOOST_TEST(on.append(missing, counting()) == "store_failed");
  BOOST_TEST(
    code_of(
      sessions.append_event(here, counting(), {.expected_revision = 7}).get())
    == "store_failed");
  BOOST_TEST(code_of(sessions.create({"press", "ann", "s"}).get())
             == "store_failed");
  BOOST_TEST(
    code_of(on.runtime.run(says("writer", "done"), missing, "Go!").wait().get())
    == "store_failed");
  place.script->fail_looks(false);
  BOOST_TEST(on.append(missing, counting()) == "not_found");
  BOOST_TEST(
    code_of(on.runtime.run(says("writer", "done"), missing, "Go!").wait().get())
    == "not_found");
  BOOST_TEST(on.append(here, counting()) == "ok");
  BOOST_TEST(on.state(here) == counted(1));
}

// The store notices the loss at the look after the commit.
BOOST_AUTO_TEST_CASE(a_commit_lost_before_its_answer_is_not_acknowledged) {
  const staged_place place;
  place.script->on_loss = [] { return lost_history{1, "lost"}; };
  std::atomic<std::size_t> commits = SIZE_MAX;
  place.script->on_looked = [&] {
    if (place.script->arrived.count() > commits) {
      commits = SIZE_MAX;
      place.script->has_lost = true;
    }
  };
  auto options = place.options();
  tally warned;
  options.on_warning = [&warned](const std::string&) { warned.add(); };
  runtime_fixture on(options);
  on.open();
  commits = place.script->arrived.count();
  const create_request wanted{"press", "ann", "t"};
  const auto created = on.sessions().create(wanted).get();
  BOOST_TEST(code_of(created) == "store_failed", reason_of(created));
  BOOST_TEST(warned.count() == 1U);
  BOOST_TEST(on.append({"press", "ann", "t"}, counting()) == "ok");
}

BOOST_AUTO_TEST_CASE(a_store_that_throws_when_asked_for_losses_is_survived) {
  const staged_place place;
  place.script->on_loss
    = []() -> lost_history { throw std::runtime_error("broken"); };
  std::string warning;
  tally warned;
  auto options = place.options();
  options.on_warning = [&](const std::string& said) {
    if (warned.count() == 0)
      warning = said;
    warned.add();
  };
  runtime_fixture on(options);
  on.open();
  place.script->has_lost = true;
  BOOST_TEST(on.append(here, counting("a")) == "ok");
  warned.await(1);
  BOOST_TEST(warning == "the store threw: broken");
  BOOST_TEST(on.append(here, counting("a")) == "ok");
  BOOST_TEST(on.state(here) == counted(1));
}

BOOST_AUTO_TEST_CASE(a_failed_removal_removes_nothing) {
  const staged_place place;
  runtime_fixture on(place.options());
  on.open();
  BOOST_TEST(on.append(here, counting()) == "ok");
  place.script->next_commits({step::fail});
  BOOST_TEST(code_of(on.sessions().remove(here).get()) == "store_failed");
  BOOST_TEST(on.state(here) == counted(1));
  place.script->next_commits({step::fail});
  BOOST_TEST(code_of(on.sessions().remove_user("press", "ann").get())
             == "store_failed");
  BOOST_TEST(on.state(here) == counted(1));
  BOOST_TEST(on.sessions().remove_user("press", "ann").value());
  BOOST_TEST(code_of(on.sessions().get(here).get()) == "not_found");
  BOOST_TEST(on.app_state() == json({{"n", 1}}));
}

// The event was once counted together with the creation, so its id was kept for
// the wrong revision.
BOOST_AUTO_TEST_CASE(an_event_sent_right_behind_its_creation_is_the_first_one) {
  const staged_place place;
  runtime_fixture on(place.options());
  answers<session> created;
  answers<event_ptr> appended;
  on.sessions().create({"press", "ann", "s"}, {{"k", 0}}).then(created.next());
  on.sessions()
    .append_event(here, change({{"k", 1}}, "once"), {.expected_revision = 0})
    .then(appended.next());
  BOOST_TEST(created.await().front().value().state().all() == json({{"k", 0}}));
  BOOST_TEST(code_of(appended.await().front()) == "ok");
  BOOST_TEST(on.append(here, change({{"k", 1}}, "once")) == "ok");
  BOOST_TEST(on.fetch(here).revision() == 1U);
}

// The sessions of a removed user once answered `not_found` before the removal
// was durable.
BOOST_AUTO_TEST_CASE(nobody_hears_of_a_removed_user_before_it_is_durable) {
  const staged_place place;
  runtime_fixture on(place.options());
  on.open();
  place.script->hold();
  answers<event_ptr> appended;
  const auto append = [&] {
    on.sessions().append_event(here, counting()).then(appended.next());
  };
  append();
  place.script->arrived.await(2);
  place.script->each_commit([] { return step::fail; });
  answers<bool> removed;
  on.sessions().remove_user("press", "ann").then(removed.next());
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
    runtime_fixture on(std::move(options));
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
        // Sends the same id until it is acknowledged.
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
  runtime_fixture again(place.options());
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

// -- removing, listing ----

BOOST_AUTO_TEST_CASE(a_removed_session_is_gone_and_its_traces_stay) {
  const staged_place place;
  {
    runtime_fixture on(place.options());
    on.open();
    BOOST_TEST(on.append(here, counting()) == "ok");
    BOOST_TEST(on.sessions().remove(here).value());
    BOOST_TEST(!on.sessions().remove(here).value());
    BOOST_TEST(on.append(here, counting()) == "not_found");
    on.open("s", {{"anew", 1}});
    BOOST_TEST(on.fetch(here).events().empty());
  }
  runtime_fixture again(place.options());
  BOOST_TEST(again.state(here)
             == json({{"anew", 1}, {"user:n", 1}, {"app:n", 1}}));
  BOOST_TEST(place.damage().empty());
}

BOOST_AUTO_TEST_CASE(a_list_shows_what_is_stored_page_by_page) {
  const staged_place place;
  auto options = place.options();
  options.live_sessions_max = 3;
  runtime_fixture on(std::move(options));
  std::set<std::string> opened;
  for (int number = 0; number < 25; ++number)
    opened.insert(
      on.open("s" + std::to_string(number), {{"user:last", number}}).id);
  std::set<std::string> seen;
  std::string cursor;
  do {
    const auto page = on.sessions().list({"press", "ann", 4, cursor}).value();
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
  runtime_fixture on(place.options());
  on.open("s", {{"temp:canary", "sparrow-0"}});
  BOOST_TEST(on.append(here, {{"temp:canary", "sparrow-1"}, {"a", 1}}) == "ok");
  const auto leak = custom("leak", [](invocation_context& ctx) -> agent_run {
    ctx.state().set("temp:canary", "sparrow-2");
    ctx.state().set("b", 1);
    co_await ctx.emit(text("done"));
  });
  BOOST_TEST(code_of(on.runtime.run(leak, here, "Go!").wait().get()) == "ok");
  const auto kept = make_memory_store(place.place);
  const auto session = kept->load_session(here, {}).value();
  BOOST_REQUIRE(session);
  BOOST_TEST(session->events.size() == 3U);
  for (const auto& said : session->events)
    BOOST_TEST(to_json(*said).dump().find("sparrow") == std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
