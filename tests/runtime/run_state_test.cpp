// The state that the agents of a run read and write, and its visibility for
// others.

#include "troupe/runtime/runtime.hpp"

#include "agent_fixture.hpp"
#include "counting.hpp"
#include "staged_store.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(runs, *boost::unit_test::timeout(120))

// -- temp ----

BOOST_AUTO_TEST_CASE(temp_is_carried_through_everything_and_gone_afterwards) {
  agent_fixture on;
  const auto model
    = scripted({{"writer", {calling("look"), {.text = "${instruction}"}}}});
  const auto look = tool_of("look", [](const json&, tool_context& context) {
    context.state().set("temp:seen", context.state().get("temp:x"));
    return json("looked");
  });
  const auto sets
    = custom("sets", [](invocation_context& context) -> agent_run {
        context.state().set("temp:x", "secret");
        co_await context.emit(text("set"));
      });
  const auto all = sequential(
    "all",
    {sets,
     asks("writer", model, "{temp:x}", {look}),
     parallel("lanes", {tells("one", "temp:x"), tells("two", "temp:seen")}),
     loop({.name = "again", .max_iterations = 2}, {tells("inner", "temp:x")})});
  const auto line = on.perform(all);
  BOOST_TEST(line.find("sets=set writer= writer= writer=secret") == 0U);
  BOOST_TEST(line.find("one=\"secret\"") != std::string::npos);
  BOOST_TEST(line.find("two=\"secret\"") != std::string::npos);
  BOOST_TEST(line.find("inner=\"secret\" inner=\"secret\" | ok")
             != std::string::npos);

  for (const auto& said : on.events(on.key))
    BOOST_TEST(to_text(to_json(*said)).find("temp:") == std::string::npos);
  BOOST_TEST(on.state_now() == json::object());
  BOOST_TEST(on.perform(tells("next", "temp:x")) == "next=absent | ok");
}

BOOST_AUTO_TEST_CASE(streamed_events_carry_no_temp) {
  agent_fixture on;
  const auto sets
    = custom("sets", [](invocation_context& context) -> agent_run {
        context.state().set("temp:x", 1);
        context.state().set("k", 1);
        co_await context.emit(text("set"));
      });
  auto run = on.runtime.run(sets, on.key, "go");
  const auto said = run.next().value();
  BOOST_TEST(said->actions.state_delta.to_json() == json({{"k", 1}}));
}

BOOST_AUTO_TEST_CASE(an_invocation_beside_does_not_see_temp) {
  agent_fixture on;
  const auto model = std::make_shared<held_model>();
  const auto sets
    = custom("sets", [](invocation_context& context) -> agent_run {
        context.state().set("temp:x", 1);
        co_await context.emit(text("set"));
      });
  auto first = on.runtime.run(
    sequential("all", {sets, asks("waits", model), tells("after", "temp:x")}),
    on.key,
    "go",
    {.policy = run_policy::interleave});
  model->asked.await(1);
  BOOST_TEST(
    on.perform(tells("other", "temp:x"), {.policy = run_policy::interleave})
    == "other=absent | ok");
  model->answer("go on");
  BOOST_TEST(agent_fixture::show(std::move(first))
             == "sets=set waits=go on after=1 | ok");
}

BOOST_AUTO_TEST_CASE(lanes_add_to_temp_without_losing_anything) {
  agent_fixture on;
  std::vector<agent> lanes;
  for (int count = 0; count < 10; ++count)
    lanes.push_back(custom("lane" + std::to_string(count),
                           [](invocation_context& context) -> agent_run {
                             for (int step = 0; step < 30; ++step) {
                               context.state().add("temp:n", 1);
                               context.state().add("n", 1);
                               if (step % 3 == 0)
                                 context.state().add("app:n", 1);
                               co_await context.emit(text("x"));
                             }
                             // Leaves a `temp:` change uncommitted.
                             context.state().add("temp:n", 1);
                           }));
  const auto line = on.perform(sequential(
    "all",
    {parallel("lanes", lanes), tells("total", "temp:n"), tells("own", "n")}));
  BOOST_TEST(line.substr(line.rfind("total")) == "total=310 own=300 | ok");
}

// -- state of running code ----

BOOST_AUTO_TEST_CASE(a_body_reads_what_it_recorded_before_it_is_committed) {
  agent_fixture on;
  const auto writer
    = custom("writer", [&](invocation_context& context) -> agent_run {
        context.state().set("k", 1);
        context.state().add("k", 1);
        const auto before = text_of(context.state().find("k"));
        const auto stored = co_await context.emit(text("{}", before));
        BOOST_TEST_MESSAGE(stored->id);
        co_await context.emit(text("{}", context.events().size()));
      });
  BOOST_TEST(on.perform(writer) == "writer=2 writer=2 | ok");
  BOOST_TEST(on.state_now() == json({{"k", 2}}));
}

BOOST_AUTO_TEST_CASE(nobody_reads_what_a_lane_has_not_committed) {
  agent_fixture on;
  // The second agent reads after the first has recorded a change, and again
  // after its commit.
  const auto recorded = std::make_shared<held_model>();
  const auto looked = std::make_shared<held_model>();
  const auto wait_for = [](model_ptr model) {
    return [model = std::move(model)](invocation_context& context) -> task<> {
      co_await context.ask(model, model_request());
    };
  };
  const auto records
    = custom("records", [=](invocation_context& context) -> agent_run {
        context.state().set("k", 1);
        co_await wait_for(recorded)(context);
        co_await context.emit(text("committed"));
      });
  const auto looks
    = custom("looks", [=](invocation_context& context) -> agent_run {
        co_await wait_for(looked)(context);
        co_await context.emit(text("{}", text_of(context.state().find("k"))));
        co_await wait_for(looked)(context);
        co_await context.emit(text("{}", text_of(context.state().find("k"))));
      });
  auto run = on.runtime.run(parallel("both", {records, looks}), on.key, "go");
  recorded->asked.await(1);
  looked->asked.await(1);
  looked->answer("");
  BOOST_TEST(run.next().value()->text() == "absent");
  recorded->answer("");
  BOOST_TEST(run.next().value()->text() == "committed");
  looked->asked.await(2);
  looked->answer("");
  BOOST_TEST(run.next().value()->text() == "1");
  BOOST_TEST(code_of(run.wait().get()) == "ok");
}

BOOST_AUTO_TEST_CASE(leftovers_of_a_body_get_an_event_of_their_own) {
  agent_fixture on;
  const auto leaves
    = custom("leaves", [](invocation_context& context) -> agent_run {
        context.state().set("k", 1);
        context.state().set("temp:k", 2);
        co_return;
      });
  BOOST_TEST(on.perform(sequential("all", {leaves, tells("t", "temp:k")}))
             == "leaves= t=2 | ok");
  BOOST_TEST(on.state_now() == json({{"k", 1}}));
}

BOOST_AUTO_TEST_CASE(leftovers_of_temp_alone_get_none) {
  agent_fixture on;
  const auto leaves
    = custom("leaves", [](invocation_context& context) -> agent_run {
        context.state().set("temp:k", 2);
        co_return;
      });
  BOOST_TEST(on.perform(sequential("all", {leaves, tells("t", "temp:k")}))
             == "t=2 | ok");
  BOOST_TEST(on.fetch(on.key).revision() == 2U);
}

BOOST_AUTO_TEST_CASE(what_a_failed_body_recorded_is_discarded) {
  agent_fixture on;
  const auto breaks
    = custom("breaks", [](invocation_context& context) -> agent_run {
        context.state().set("kept", 1);
        co_await context.emit(text("said"));
        context.state().set("lost", 1);
        context.state().set("app:lost", 1);
        throw std::runtime_error("broken");
      });
  BOOST_TEST(on.perform(breaks) == "breaks=said | callback_failed");
  BOOST_TEST(agent_fixture::last_reason().find("broken") != std::string::npos);
  BOOST_TEST(agent_fixture::last_reason().find("breaks") != std::string::npos);
  BOOST_TEST(on.state_now() == json({{"kept", 1}}));
}

BOOST_AUTO_TEST_CASE(a_refused_emit_throws_and_leaves_nothing_behind) {
  agent_fixture on;
  on.append(on.key, {{"app:text", "t"}});
  const auto tries
    = custom("tries", [](invocation_context& context) -> agent_run {
        for (const std::string key : {"app:text", "temp:text"}) {
          context.state().set("temp:text", "t");
          co_await context.emit(text("ready"));
          context.state().add(key, 1);
          context.state().set("lost", 1);
          context.state().set("temp:lost", 1);
          std::string code = "ok";
          try {
            co_await context.emit(text("refused"));
          } catch (const error& failure) {
            code = to_string(failure.code());
          }
          co_await context.emit(text("{} {} {}",
                                     code,
                                     context.state().contains("lost"),
                                     context.state().contains("temp:lost")));
        }
      });
  BOOST_TEST(on.perform(tries)
             == "tries=ready tries=type_error false false tries=ready "
                "tries=type_error false false | ok");
  BOOST_TEST(on.state_now() == json({{"app:text", "t"}}));
}

BOOST_AUTO_TEST_CASE(eight_runs_that_add_one_each_end_at_eight) {
  agent_fixture on;
  const auto model = std::make_shared<held_model>();
  const auto counts
    = custom("counts", [=](invocation_context& context) -> agent_run {
        context.state().add("n", 1);
        co_await context.ask(model, model_request());
        co_await context.emit(text("counted"));
      });
  std::vector<run> all;
  for (int count = 0; count < 8; ++count)
    all.push_back(
      on.runtime.run(counts, on.key, "go", {.policy = run_policy::interleave}));
  model->asked.await(8);
  model->answer("");
  for (auto& each : all)
    BOOST_TEST(code_of(each.wait().get()) == "ok");
  BOOST_TEST(on.state_now() == json({{"n", 8}}));
}

BOOST_AUTO_TEST_CASE(refresh_shows_what_other_sessions_did) {
  agent_fixture on;
  const auto other = on.open("other");
  const auto model = std::make_shared<held_model>();
  const auto looks = custom(
    "looks", [=](invocation_context& context) -> agent_run {
      co_await context.ask(model, model_request());
      co_await context.refresh();
      co_await context.emit(text("{}", text_of(context.state().find("app:k"))));
    });
  auto run = on.runtime.run(looks, on.key, "go");
  model->asked.await(1);
  on.append(other, {{"app:k", 1}});
  model->answer("");
  BOOST_TEST(agent_fixture::show(std::move(run)) == "looks=1 | ok");
}

// Others only increment these counters: in memory, over a store, and through
// another runtime on the store.
BOOST_DATA_TEST_CASE(what_a_lane_has_seen_it_does_not_lose,
                     data::xrange(3),
                     place_of_writers) {
  const staged_place place;
  runtime_fixture on(place_of_writers == 0 ? runtime_options()
                                           : place.options());
  std::optional<runtime_fixture> beside;
  if (place_of_writers == 2)
    beside.emplace(place.beside());
  auto& writing = beside ? *beside : on;
  on.open();
  const auto other = on.open("other");
  constexpr std::size_t writers = 4;
  constexpr int each = 100;
  constexpr int total = static_cast<int>(writers) * each;
  std::atomic<int> lost = 0;
  std::atomic<int> missing = 0;
  std::atomic<bool> done = false;
  tally looking;
  const auto looks = [&](const std::string& name) {
    return custom(name, [&, name](invocation_context& context) -> agent_run {
      std::map<std::string, int> newest;
      for (int round = 0; true; ++round) {
        const bool is_last = done;
        co_await context.refresh();
        for (const auto* const key : {"n", "user:n", "app:n", "own"}) {
          const auto now = context.state().get<int>(key, 0);
          lost += now < newest[key];
          newest[key] = now;
        }
        looking.add();
        if (is_last)
          break;
        if (round % 10 != 0)
          continue;
        context.state().add("own", 1);
        co_await context.emit(text("round"));
      }
      missing += total - newest["n"] + 2 * total - newest["user:n"] + 2 * total
                 - newest["app:n"];
    });
  };
  auto run = on.runtime.run(
    parallel("lanes", {looks("a"), looks("b"), looks("c")}), here, "Go!");
  looking.await(3);
  std::atomic<int> failed = 0;
  on_threads(writers, [&](std::size_t) {
    for (int count = 0; count < each; ++count)
      failed += static_cast<int>(writing.append(here, counting()) != "ok")
                + static_cast<int>(writing.append(other, counting()) != "ok");
  });
  done = true;
  BOOST_TEST(code_of(run.wait().get()) == "ok");
  BOOST_TEST(failed == 0);
  BOOST_TEST(lost == 0);
  BOOST_TEST(missing == 0);
}

// -- retries ----

BOOST_AUTO_TEST_CASE(an_event_that_is_emitted_again_takes_effect_once) {
  agent_fixture on;
  const auto again = custom(
    "again", [](invocation_context& context) -> agent_run {
      for (int count = 0; count < 3; ++count) {
        event said(text("once"));
        said.id = "once";
        said.actions.state_delta.record("temp:n", operation_kind::add, json(1))
          .value();
        said.actions.state_delta.record("n", operation_kind::add, json(1))
          .value();
        co_await context.emit(said);
      }
      co_await context.emit(text("{}", context.state().get<int>("temp:n")));
    });
  BOOST_TEST(on.perform(again) == "again=once again=1 | ok");
  BOOST_TEST(on.state_now() == json({{"n", 1}}));
}

BOOST_AUTO_TEST_CASE(an_event_of_an_earlier_run_is_not_handed_out_again) {
  agent_fixture on;
  const auto root
    = custom("root", [](invocation_context& context) -> agent_run {
        event said(text("once"));
        said.id = "once";
        const auto stored = co_await context.emit(std::move(said));
        BOOST_TEST(stored->text() == "once");
      });
  BOOST_TEST(on.perform(root) == "root=once | ok");
  BOOST_TEST(on.perform(root) == "| ok");
}

BOOST_AUTO_TEST_SUITE_END()
