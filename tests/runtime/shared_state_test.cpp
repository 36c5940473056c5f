// The handle to the state of an app or a user, in memory and over stores.

#include "troupe/runtime/shared_state.hpp"

#include "agent_fixture.hpp"
#include "seeded_jobs.hpp"
#include "staged_store.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;
namespace data = boost::unit_test::data;

using step = store_script::step;

namespace {

// A write with an id, and optionally a revision that it expects.
using with = shared_write_options;

// Revision and value of an answer, `"3: 42"`; the code of a failure.
std::string shown(const result<shared_write>& answer) {
  if (!answer)
    return code_of(answer);
  const auto text
    = answer->value ? to_text(answer->value->data()) : std::string("unset");
  return std::to_string(answer->revision) + ": " + text;
}

} // namespace

BOOST_AUTO_TEST_SUITE(shared_state_handles, *boost::unit_test::timeout(120))

// -- in memory ----

BOOST_AUTO_TEST_CASE(app_and_user_are_written_without_a_session) {
  runtime_fixture on;
  const auto app = on.sessions().state_of_app("press");
  const auto ann = on.sessions().state_of_user("press", "ann");
  BOOST_TEST(shown(app.set("app:theme", "dark").get()) == "1: \"dark\"");
  BOOST_TEST(shown(ann.set("user:name", "Ann").get()) == "1: \"Ann\"");
  BOOST_TEST(shown(app.erase("app:theme").get()) == "2: null");
  BOOST_TEST(shown(app.set("app:n", 1).get()) == "3: 1");
  BOOST_TEST(on.app_state() == json({{"n", 1}}));
  BOOST_TEST(on.user_state() == json({{"name", "Ann"}}));
  BOOST_TEST(on.user_state("bob") == json::object());
  BOOST_TEST(on.rows().empty());
  const auto key = on.open();
  BOOST_TEST(on.state(key) == json({{"app:n", 1}, {"user:name", "Ann"}}));
}

BOOST_AUTO_TEST_CASE(a_shared_handle_has_typed_operations_and_reads) {
  runtime_fixture on;
  const auto app = on.sessions().state_of_app("press");
  BOOST_TEST(shown(app.add("app:n", 2).get()) == "1: 2");
  BOOST_TEST(shown(app.append("app:list", "a").get()) == "2: [\"a\"]");
  BOOST_TEST(shown(app.add_to_set("app:set", {"x", "x"}).get())
             == "3: [\"x\"]");
  BOOST_TEST(shown(app.min("app:low", 3).get()) == "4: 3");
  BOOST_TEST(shown(app.max("app:high", 3).get()) == "5: 3");
  BOOST_TEST(shown(app.merge("app:map", {{"k", 1}}).get()) == "6: {\"k\":1}");
  BOOST_TEST(shown(app.compare_and_set("app:lock", nullptr, "me").get())
             == "7: \"me\"");
  BOOST_TEST(shown(app.compare_and_set("app:lock", nullptr, "you").get())
             == "conflict");
  BOOST_TEST(shown(app.add("app:list", 1).get()) == "type_error");
  BOOST_TEST(shown(app.add("app:n", "one").get()) == "invalid_argument");

  BOOST_TEST(app.get<int>("app:n").value() == 2);
  BOOST_TEST(app.get("app:absent", 7).value() == 7);
  BOOST_TEST(app.get("app:absent", "none").value() == "none");
  BOOST_TEST(text_of(app.find("app:low").value()) == "3");
  BOOST_TEST(code_of(app.get<int>("app:absent").get()) == "not_found");
  BOOST_TEST(code_of(app.get<int>("app:lock").get()) == "type_error");
  const auto newest = app.snapshot().value();
  BOOST_TEST(newest.revision == 7U);
  BOOST_TEST(newest.state.get<int>("app:high") == 3);
}

BOOST_AUTO_TEST_CASE(keys_of_another_scope_are_refused) {
  runtime_fixture on;
  const auto app = on.sessions().state_of_app("press");
  const auto ann = on.sessions().state_of_user("press", "ann");
  for (const auto* bad : {"topic",
                          "temp:x",
                          "user:x",
                          "app:app:x",
                          "app:temp:x",
                          "app:__x",
                          "app:__write/0",
                          "app:"})
    BOOST_TEST(shown(app.set(bad, 1).get()) == "invalid_argument");
  for (const auto* bad : {"topic", "temp:x", "user:x", "app:__write/0"}) {
    BOOST_TEST(code_of(app.get(bad, 1).get()) == "invalid_argument");
    BOOST_TEST(shown(app.erase(bad).get()) == "invalid_argument");
  }
  BOOST_TEST(shown(ann.add("app:n", 1).get()) == "invalid_argument");
  BOOST_TEST(shown(app.set("app:x", std::string(300'000, 'x')).get())
             == "too_large");
  BOOST_TEST(shown(on.sessions().state_of_app(" ").set("app:x", 1).get())
             == "invalid_argument");
  BOOST_TEST(
    shown(on.sessions().state_of_user("press", "").set("user:x", 1).get())
    == "invalid_argument");
  BOOST_TEST(app.snapshot().value().revision == 0U);
}

// Older versions, and imports, have stored such keys.
BOOST_AUTO_TEST_CASE(a_shared_key_with_two_prefixes_is_erased) {
  runtime_fixture on;
  on.open("s", {{"app:user:x", 1}});
  const auto app = on.sessions().state_of_app("press");
  BOOST_TEST(app.get<int>("app:user:x").value() == 1);
  BOOST_TEST(shown(app.erase("app:user:x").get()) == "2: null");
}

BOOST_AUTO_TEST_CASE(a_retried_write_takes_effect_once) {
  runtime_fixture on;
  const auto app = on.sessions().state_of_app("press");
  for (int count = 0; count < 3; ++count)
    BOOST_TEST(shown(app.add("app:n", 2, with("once")).get()) == "1: 2");
  BOOST_TEST(shown(app.add("app:n", 3, with("once")).get()) == "conflict");
  BOOST_TEST(shown(app.set("app:n", 2, with("once")).get()) == "conflict");
  BOOST_TEST(shown(app.add("app:n", 1).get()) == "2: 3");
  // The answer is that of the first attempt.
  BOOST_TEST(shown(app.add("app:n", 2, with("once", 0)).get()) == "1: 2");
  // Each scope has its own ids.
  const auto ann = on.sessions().state_of_user("press", "ann");
  BOOST_TEST(shown(ann.add("user:n", 2, with("once")).get()) == "1: 2");
}

BOOST_AUTO_TEST_CASE(a_refused_write_can_be_sent_again) {
  runtime_fixture on;
  const auto app = on.sessions().state_of_app("press");
  app.set("app:n", "text").value();
  BOOST_TEST(shown(app.add("app:n", 1, with("w")).get()) == "type_error");
  app.erase("app:n").value();
  BOOST_TEST(shown(app.add("app:n", 1, with("w")).get()) == "3: 1");
}

BOOST_AUTO_TEST_CASE(the_newest_64_ids_are_remembered) {
  runtime_fixture on;
  const auto app = on.sessions().state_of_app("press");
  for (int count = 1; count <= 65; ++count)
    app.add("app:n", 1, with("w" + std::to_string(count))).value();
  BOOST_TEST(shown(app.add("app:n", 1, with("w2")).get()) == "2: 2");
  BOOST_TEST(shown(app.add("app:n", 1, with("w1")).get()) == "66: 66");
}

BOOST_AUTO_TEST_CASE(an_expected_revision_counts_events_and_writes) {
  runtime_fixture on;
  const auto key = on.open();
  const auto app = on.sessions().state_of_app("press");
  BOOST_TEST(on.append(key, {{"app:n", 1}}) == "ok");
  BOOST_TEST(on.append(key, {{"n", 1}}) == "ok");
  BOOST_TEST(shown(app.set("app:n", 2, with("", 0)).get()) == "conflict");
  BOOST_TEST(shown(app.set("app:n", 2, with("", 1)).get()) == "2: 2");
  BOOST_TEST(shown(app.set("app:n", 3, with("", 1)).get()) == "conflict");
}

BOOST_AUTO_TEST_CASE(concurrent_writes_and_events_all_count) {
  runtime_fixture on;
  const auto keys = on.open_many({.sessions = 4, .users = 2});
  on_threads(8, [&](std::size_t index) {
    const auto app = on.sessions().state_of_app("press");
    const auto user = on.sessions().state_of_user("press", "u0");
    for (int count = 0; count < 50; ++count) {
      if (index < 4)
        on.sessions()
          .append_event(keys[index],
                        operate({operation_on("app:n", "add", 1),
                                 operation_on("user:n", "add", 1)}))
          .value();
      else if (index < 6)
        app.add("app:n", 1).value();
      else
        user.add("user:n", 1).value();
    }
  });
  BOOST_TEST(on.app_state()["n"] == 300);
  BOOST_TEST(on.user_state("u0")["n"] == 200);
  BOOST_TEST(on.sessions().state_of_app("press").snapshot().value().revision
             == 300U);
}

BOOST_AUTO_TEST_CASE(an_agent_sees_what_was_written_before_its_run) {
  runtime_fixture on;
  const auto key = on.open();
  on.sessions().state_of_app("press").set("app:theme", "dark").value();
  std::string seen;
  const auto look
    = custom("look", [&seen](invocation_context& ctx) -> agent_run {
        seen = ctx.state().all().dump();
        co_await ctx.emit(text("done"));
      });
  BOOST_TEST(code_of(on.runtime.run(look, key, "Go!").wait().get()) == "ok");
  BOOST_TEST(seen == R"({"app:theme":"dark"})");
}

BOOST_AUTO_TEST_CASE(a_written_user_is_removed) {
  runtime_fixture on;
  const auto ann = on.sessions().state_of_user("press", "ann");
  BOOST_TEST(shown(ann.compare_and_set("user:n", 1, 2).get()) == "conflict");
  BOOST_TEST(!on.sessions().remove_user("press", "ann").value());
  ann.set("user:n", 1, with("w")).value();
  BOOST_TEST(on.sessions().remove_user("press", "ann").value());
  BOOST_TEST(on.user_state() == json::object());
  BOOST_TEST(shown(ann.add("user:n", 2, with("w")).get()) == "1: 2");
}

BOOST_AUTO_TEST_CASE(writes_around_a_removal_are_all_answered) {
  runtime_fixture on;
  answers<shared_write> written;
  const auto ann = on.sessions().state_of_user("press", "ann");
  on_threads(4, [&](std::size_t index) {
    for (int count = 0; count < 50; ++count) {
      if (index == 0)
        static_cast<void>(on.sessions().remove_user("press", "ann").get());
      else
        ann.add("user:n", 1).then(written.next());
    }
  });
  for (const auto& answer : written.await())
    BOOST_TEST(code_of(answer) == "ok");
}

// A reader, or a refused write, makes the actor of a user that does not exist.
// It leaves memory again, unless the user is written meanwhile.
BOOST_DATA_TEST_CASE(a_user_that_is_written_as_it_leaves_stays,
                     data::make({false, true}) * data::xrange(4),
                     is_followed,
                     seed) {
  seeded_runtime on(static_cast<std::uint64_t>(seed));
  for (int number = 0; number < 200; ++number) {
    const auto user = on.runtime.sessions().state_of_user(
      "press", "u" + std::to_string(number));
    std::optional<state_follower> reader;
    if (is_followed)
      reader.emplace(user.follow());
    else
      user.set("user:n", 0, with("", 7)).then([](const auto& refused) {
        BOOST_TEST(shown(refused) == "conflict");
      });
    on.jobs.run_some();
    answers<shared_write> written;
    user.set("user:n", number).then(written.next());
    on.jobs.run_all();
    BOOST_TEST_REQUIRE(shown(written.taken()[0])
                       == "1: " + std::to_string(number));
    answers<shared_snapshot> read;
    user.snapshot().then(read.next());
    answers<std::optional<state_change>> told;
    if (is_followed)
      reader->next().then(told.next());
    on.jobs.run_all();
    BOOST_TEST_REQUIRE(read.taken()[0]->revision == 1U);
    for (const auto& change : told.taken())
      BOOST_TEST_REQUIRE((*change)->revision == 1U);
  }
}

BOOST_AUTO_TEST_CASE(writes_are_refused_after_the_end) {
  runtime_fixture on;
  const auto app = on.sessions().state_of_app("press");
  BOOST_TEST(code_of(on.runtime.shut_down()) == "ok");
  BOOST_TEST(shown(app.set("app:n", 1).get()) == "cancelled");
}

// -- over a store ----

BOOST_AUTO_TEST_CASE(a_write_is_there_in_the_next_runtime_with_its_id) {
  const staged_place place;
  {
    runtime_fixture first(place.options());
    const auto app = first.sessions().state_of_app("press");
    for (int count = 0; count < 70; ++count)
      app.add("app:n", 1, with("w" + std::to_string(count))).value();
    first.sessions()
      .state_of_user("press", "ann")
      .set("user:text", std::string(2'000, 'x'), with("long"))
      .value();
  }
  runtime_fixture second(place.options());
  const auto app = second.sessions().state_of_app("press");
  const auto ann = second.sessions().state_of_user("press", "ann");
  BOOST_TEST(shown(app.add("app:n", 1, with("w6")).get()) == "7: 7");
  BOOST_TEST(shown(app.add("app:n", 2, with("w6")).get()) == "conflict");
  BOOST_TEST(shown(app.add("app:n", 1, with("w5")).get()) == "71: 71");
  BOOST_TEST(
    shown(ann.set("user:text", std::string(2'000, 'x'), with("long")).get())
    == "1: unset");
  BOOST_TEST(place.damage().empty());
}

// Reserved keys are in the store, and are shown nowhere.
BOOST_AUTO_TEST_CASE(remembered_ids_are_hidden) {
  const staged_place place;
  {
    runtime_fixture first(place.options());
    first.open();
    first.sessions().state_of_app("press").set("app:n", 1, with("w")).value();
    first.sessions()
      .state_of_user("press", "ann")
      .set("user:n", 1, with("w"))
      .value();
  }
  runtime_fixture second(place.options());
  BOOST_TEST(second.app_state() == json({{"n", 1}}));
  BOOST_TEST(second.user_state() == json({{"n", 1}}));
  const json whole{{"app:n", 1}, {"user:n", 1}};
  BOOST_TEST(second.state({"press", "ann", "s"}) == whole);
  const auto rows = second.rows();
  BOOST_REQUIRE(rows.size() == 1U);
  BOOST_TEST(rows[0].state().all() == whole);
}

BOOST_AUTO_TEST_CASE(a_write_is_answered_when_it_is_durable) {
  const staged_place place;
  runtime_fixture on(place.options());
  const auto app = on.sessions().state_of_app("press");
  app.set("app:n", 1).value();
  place.script->hold();
  answers<shared_write> written;
  app.add("app:n", 1, with("w")).then(written.next());
  place.script->arrived.await(2);
  // A retry and a refusal are based on a write that is not durable yet.
  app.add("app:n", 1, with("w")).then(written.next());
  app.set("app:n", 1, with("", 1)).then(written.next());
  answers<json> read;
  on.sessions().app_state("press").then(read.next());
  // Long enough for an answer that does not wait for the store.
  BOOST_TEST(!written.any_within(100ms));
  BOOST_TEST(!read.any_within(100ms));
  place.script->release();
  const auto all = written.await();
  BOOST_TEST(shown(all[0]) == "2: 2");
  BOOST_TEST(shown(all[1]) == "2: 2");
  BOOST_TEST(shown(all[2]) == "conflict");
  BOOST_TEST(read.await()[0].value() == json({{"n", 2}}));
}

BOOST_AUTO_TEST_CASE(a_failed_write_leaves_no_trace_and_is_sent_again) {
  const staged_place place;
  runtime_fixture on(place.options());
  for (const auto outcome : {step::fail, step::fail_anyway}) {
    const auto* const id = outcome == step::fail ? "lost" : "written";
    const auto app = on.sessions().state_of_app("press");
    const auto ann = on.sessions().state_of_user("press", "ann");
    place.script->next_commits({outcome});
    BOOST_TEST(shown(app.add("app:n", 1, with(id)).get()) == "store_failed");
    BOOST_TEST(code_of(app.add("app:n", 1, with(id)).get()) == "ok");
    BOOST_TEST(code_of(app.add("app:n", 1, with(id)).get()) == "ok");
    place.script->next_commits({outcome});
    BOOST_TEST(shown(ann.add("user:n", 1, with(id)).get()) == "store_failed");
    BOOST_TEST(code_of(ann.add("user:n", 1, with(id)).get()) == "ok");
  }
  BOOST_TEST(on.app_state() == json({{"n", 2}}));
  BOOST_TEST(on.user_state() == json({{"n", 2}}));
  BOOST_TEST(place.damage().empty());
}

BOOST_AUTO_TEST_CASE(writes_behind_a_failure_are_decided_again) {
  const staged_place place;
  runtime_fixture on(place.options());
  const auto key = on.open("s", {{"app:n", 0}});
  const auto app = on.sessions().state_of_app("press");
  place.script->hold();
  answers<shared_write> written;
  answers<event_ptr> appended;
  app.add("app:n", 1).then(written.next());
  place.script->arrived.await(2);
  app.add("app:n", 10, with("w")).then(written.next());
  app.add("app:n", 10, with("w")).then(written.next());
  app.compare_and_set("app:n", 1, 5).then(written.next());
  on.sessions()
    .append_event(key, operate({operation_on("app:n", "add", 100)}))
    .then(appended.next());
  place.script->next_commits({step::fail});
  place.script->release();
  const auto all = written.await();
  BOOST_TEST(shown(all[0]) == "store_failed");
  BOOST_TEST(shown(all[1]) == "2: 10");
  BOOST_TEST(shown(all[2]) == "2: 10");
  BOOST_TEST(shown(all[3]) == "conflict");
  BOOST_TEST(code_of(appended.await()[0]) == "ok");
  BOOST_TEST(on.app_state() == json({{"n", 110}}));
  BOOST_TEST(place.damage().empty());
}

BOOST_AUTO_TEST_CASE(a_write_whose_owner_does_not_load_fails) {
  const staged_place place;
  runtime_fixture on(place.options());
  const auto ann = on.sessions().state_of_user("press", "ann");
  place.script->fail_loads(true);
  BOOST_TEST(shown(ann.add("user:n", 1).get()) == "store_failed");
  place.script->fail_loads(false);
  BOOST_TEST(shown(ann.add("user:n", 1).get()) == "1: 1");
  place.script->next_commits({step::vanish});
  BOOST_TEST(shown(ann.add("user:n", 1).get()) == "store_failed");
  BOOST_TEST(shown(ann.add("user:n", 1).get()) == "store_failed");
  place.script->fail_loads(false);
  BOOST_TEST(shown(ann.add("user:n", 1).get()) == "2: 2");
}

BOOST_AUTO_TEST_CASE(a_user_is_removed_behind_its_writes) {
  const staged_place place;
  runtime_fixture on(place.options());
  const auto ann = on.sessions().state_of_user("press", "ann");
  BOOST_TEST(!on.sessions().remove_user("press", "ann").value());
  place.script->hold();
  answers<shared_write> written;
  answers<bool> removed;
  ann.add("user:n", 1, with("w")).then(written.next());
  on.sessions().remove_user("press", "ann").then(removed.next());
  ann.add("user:n", 5, with("w")).then(written.next());
  place.script->release();
  const auto all = written.await();
  BOOST_TEST(shown(all[0]) == "1: 1");
  BOOST_TEST(shown(all[1]) == "1: 5");
  BOOST_TEST(removed.await()[0].value());
  BOOST_TEST(on.user_state() == json({{"n", 5}}));
  BOOST_TEST(place.damage().empty());
}

// -- several runtimes on one store ----

BOOST_AUTO_TEST_CASE(writes_of_two_runtimes_all_count) {
  const staged_place place;
  runtime_fixture one(place.options());
  runtime_fixture other(place.options());
  const auto key = one.open();
  on_threads(4, [&](std::size_t index) {
    auto& on = index % 2 == 0 ? one : other;
    const auto app = on.sessions().state_of_app("press");
    const auto ann = on.sessions().state_of_user("press", "ann");
    for (int count = 0; count < 25; ++count) {
      app.add("app:n", 1).value();
      ann.add("user:n", 1).value();
      if (index == 0)
        on.sessions()
          .append_event(key,
                        operate({operation_on("app:n", "add", 1),
                                 operation_on("user:n", "add", 1)}))
          .value();
    }
  });
  for (auto* on : {&one, &other}) {
    BOOST_TEST(on->app_state() == json({{"n", 125}}));
    BOOST_TEST(on->user_state() == json({{"n", 125}}));
  }
  BOOST_TEST(place.damage().empty());
}

BOOST_AUTO_TEST_CASE(a_retry_at_another_runtime_takes_effect_once) {
  const staged_place place;
  runtime_fixture one(place.options());
  runtime_fixture other(place.options());
  const auto write = [](runtime_fixture& on, json number) {
    return shown(on.sessions()
                   .state_of_app("press")
                   .add("app:n", std::move(number), with("w"))
                   .get());
  };
  BOOST_TEST(other.app_state() == json::object());
  BOOST_TEST(write(one, 1) == "1: 1");
  BOOST_TEST(write(other, 1) == "1: 1");
  BOOST_TEST(write(other, 2) == "conflict");
  BOOST_TEST(
    shown(
      one.sessions().state_of_app("press").set("app:n", 7, with("", 1)).get())
    == "2: 7");
  // The other one has loaded the app at revision 1.
  BOOST_TEST(
    shown(
      other.sessions().state_of_app("press").set("app:n", 8, with("", 1)).get())
    == "conflict");
}

BOOST_AUTO_TEST_SUITE_END()
