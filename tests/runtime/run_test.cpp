// The public calls of runs: order, queueing, failures, and many runs at once.

#include "troupe/runtime/runtime.hpp"

#include "agent_fixture.hpp"
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(runs, *boost::unit_test::timeout(120))

// -- order ----

BOOST_AUTO_TEST_CASE(a_sequence_runs_in_order_and_the_stream_is_the_log) {
  agent_fixture on;
  BOOST_TEST(on.perform(sequential(
               "all", {says("a", "1"), says("b", "2"), says("c", "3")}))
             == "a=1 b=2 c=3 | ok");
  BOOST_TEST(on.texts(on.key)
               == std::vector<std::string>({"go", "1", "2", "3"}),
             boost::test_tools::per_element());
  const auto events = on.events(on.key);
  BOOST_TEST(events.front()->author == "user");
  for (const auto& said : events)
    BOOST_TEST(said->invocation_id == events.front()->invocation_id);
}

BOOST_AUTO_TEST_CASE(the_stream_of_many_lanes_is_the_log) {
  agent_fixture on;
  std::vector<agent> lanes;
  for (int count = 0; count < 12; ++count)
    lanes.push_back(custom("lane" + std::to_string(count),
                           [](invocation_context& context) -> agent_run {
                             for (int step = 0; step < 20; ++step) {
                               context.state().add("app:n", 1);
                               context.state().add("n", 1);
                               co_await context.emit(text("{}", step));
                             }
                           }));
  auto run = on.runtime.run(parallel("lanes", lanes), on.key, "go");
  std::vector<event_ptr> streamed;
  while (auto next = run.next().value())
    streamed.push_back(next);
  const auto events = on.events(on.key);
  BOOST_TEST(streamed.size() == 240U);
  BOOST_TEST(events.size() == 241U);
  for (std::size_t index = 0; index < streamed.size(); ++index)
    BOOST_TEST((streamed[index] == events[index + 1]));
  BOOST_TEST(on.state_now() == json({{"app:n", 240}, {"n", 240}}));
  BOOST_TEST(streamed.front()->branch.starts_with("lanes.lane"));
}

BOOST_AUTO_TEST_CASE(runs_after_each_other_share_the_session) {
  agent_fixture on;
  BOOST_TEST(on.perform(adds("a", "n")) == "a=1 | ok");
  BOOST_TEST(on.perform(adds("a", "n")) == "a=2 | ok");
  const auto events = on.events(on.key);
  BOOST_TEST(events.size() == 4U);
  BOOST_TEST(events[0]->invocation_id != events[2]->invocation_id);
}

BOOST_AUTO_TEST_CASE(a_run_needs_its_session_and_a_sound_message) {
  agent_fixture on;
  const auto agent = says("a", "1");
  BOOST_TEST(
    agent_fixture::show(on.runtime.run(agent, {"press", "ann", "none"}, "go"))
    == "| not_found");
  BOOST_TEST(
    agent_fixture::show(on.runtime.run(agent, {"press", "", "s"}, "go"))
    == "| invalid_argument");
  BOOST_TEST(
    agent_fixture::show(on.runtime.run(agent, on.key, content("user", {})))
    == "| invalid_argument");
  BOOST_TEST(agent_fixture::show(on.runtime.run(agent, on.key, "\xff"))
             == "| invalid_argument");
  BOOST_TEST(on.perform(agent, {}, {{"__x", 1}}) == "| invalid_argument");
  BOOST_TEST(
    agent_fixture::show(on.runtime.run(
      agent, on.key, content("user", {function_call{"", "f", json::object()}})))
    == "| invalid_argument");
  BOOST_TEST(on.fetch(on.key).revision() == 0U);
}

BOOST_AUTO_TEST_CASE(the_message_carries_a_delta_for_all_scopes) {
  agent_fixture on;
  const auto all = sequential("all",
                              {tells("own", "k"),
                               tells("users", "user:k"),
                               tells("apps", "app:k"),
                               tells("temps", "temp:k")});
  BOOST_TEST(
    on.perform(all, {}, {{"k", 1}, {"user:k", 2}, {"app:k", 3}, {"temp:k", 4}})
    == "own=1 users=2 apps=3 temps=4 | ok");
  BOOST_TEST(on.state_now() == json({{"k", 1}, {"user:k", 2}, {"app:k", 3}}));
  BOOST_TEST(on.events(on.key).front()->actions.state_delta.to_json()
             == json({{"k", 1}, {"user:k", 2}, {"app:k", 3}}));
}

// -- turns on the session ----

BOOST_AUTO_TEST_CASE(queued_runs_take_their_turns_in_call_order) {
  agent_fixture on;
  const auto model = std::make_shared<held_model>();
  auto first = on.runtime.run(asks("first", model), on.key, "go");
  model->asked.await(1);
  std::vector<run> queued;
  for (int count = 0; count < 5; ++count)
    queued.push_back(on.runtime.run(
      says("a" + std::to_string(count), "x"), on.key, std::to_string(count)));
  BOOST_TEST(on.fetch(on.key).revision() == 1U);
  model->answer("done");
  for (auto& each : queued)
    BOOST_TEST(code_of(each.wait().get()) == "ok");
  BOOST_TEST(
    on.texts(on.key)
      == std::vector<std::string>(
        {"go", "done", "0", "x", "1", "x", "2", "x", "3", "x", "4", "x"}),
    boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_run_that_would_have_to_wait_can_be_refused) {
  agent_fixture on;
  const auto model = std::make_shared<held_model>();
  auto first = on.runtime.run(asks("first", model), on.key, "go");
  model->asked.await(1);
  BOOST_TEST(on.perform(says("a", "x"), {.policy = run_policy::reject})
             == "| busy");
  BOOST_TEST(on.fetch(on.key).revision() == 1U);
  model->answer("done");
  BOOST_TEST(code_of(first.wait().get()) == "ok");
  BOOST_TEST(on.perform(says("a", "x"), {.policy = run_policy::reject})
             == "a=x | ok");
}

BOOST_AUTO_TEST_CASE(interleaved_runs_do_not_wait) {
  agent_fixture on;
  const auto model = std::make_shared<held_model>();
  auto first = on.runtime.run(asks("first", model), on.key, "go");
  model->asked.await(1);
  BOOST_TEST(on.perform(says("a", "x"), {.policy = run_policy::interleave})
             == "a=x | ok");
  // A queued run waits for all active runs.
  auto last = on.runtime.run(says("b", "y"), on.key, "go");
  model->answer("done");
  BOOST_TEST(code_of(first.wait().get()) == "ok");
  BOOST_TEST(agent_fixture::show(std::move(last)) == "b=y | ok");
}

BOOST_AUTO_TEST_CASE(appends_go_on_beside_a_run) {
  agent_fixture on;
  const auto model = std::make_shared<held_model>();
  auto run = on.runtime.run(
    sequential("all", {asks("waits", model), tells("reads", "k")}),
    on.key,
    "go");
  model->asked.await(1);
  BOOST_TEST(on.append(on.key, {{"k", 1}}) == "ok");
  model->answer("done");
  BOOST_TEST(agent_fixture::show(std::move(run)) == "waits=done reads=1 | ok");
}

// -- circular calls ----

BOOST_AUTO_TEST_CASE(an_agent_that_calls_one_above_it_is_refused) {
  agent_fixture on;
  // The cycle has three agents; each description is made again.
  std::function<agent(int)> nested = [&](int depth) {
    return custom("a" + std::to_string(depth % 3),
                  [=, &nested](invocation_context& context) -> agent_run {
                    const auto next = nested(depth + 1);
                    co_await context.run(next);
                  });
  };
  BOOST_TEST(on.perform(nested(0)) == "| circular_agent_call");
  BOOST_TEST(agent_fixture::last_reason().find("a0") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(agents_below_each_other_are_limited) {
  agent_fixture on;
  std::function<agent(int)> nested = [&](int depth) {
    return custom("a" + std::to_string(depth),
                  [=, &nested](invocation_context& context) -> agent_run {
                    if (depth == 5)
                      co_return;
                    const auto next = nested(depth + 1);
                    co_await context.run(next);
                  });
  };
  BOOST_TEST(on.perform(nested(0), {.agent_depth_max = 6}) == "| ok");
  BOOST_TEST(on.perform(nested(0), {.agent_depth_max = 5})
             == "| limit_exceeded");
}

BOOST_AUTO_TEST_CASE(a_nested_run_on_the_same_session_would_deadlock) {
  agent_fixture on;
  const auto inner = says("inner", "x");
  const auto other = on.open("other");
  const auto nests
    = custom("nests", [&](invocation_context& context) -> agent_run {
        auto same = on.runtime.run(inner, on.key, "go");
        const auto refused = co_await same.wait();
        auto beside = on.runtime.run(
          inner, on.key, "go", {.policy = run_policy::interleave});
        const auto interleaved = co_await beside.wait();
        auto away = on.runtime.run(inner, other, "go");
        const auto elsewhere = co_await away.wait();
        co_await context.emit(text("{} {} {}",
                                   code_of(refused),
                                   code_of(interleaved),
                                   code_of(elsewhere)));
      });
  BOOST_TEST(on.perform(nests) == "nests=would_deadlock ok ok | ok");
}

BOOST_AUTO_TEST_CASE(a_tool_that_runs_on_its_own_session_would_deadlock) {
  agent_fixture on;
  const auto other = on.open("other");
  const auto inner = says("inner", "x");
  // Indirectly: a run on another session, whose tool starts a run here.
  const auto back = tool_of("back", [&](const json&, tool_context&) -> json {
    return code_of(on.runtime.run(inner, on.key, "go").wait().get());
  });
  const auto corner
    = asks("corner",
           scripted({{"corner", {calling("back"), {.text = "done"}}}}),
           {back});
  const auto out = tool_of("out", [&](const json&, tool_context&) -> json {
    const auto here = code_of(on.runtime.run(inner, on.key, "go").wait().get());
    return here + " "
           + code_of(on.runtime.run(corner, other, "go").wait().get());
  });
  on.perform(
    asks("a", scripted({{"a", {calling("out"), {.text = "done"}}}}), {out}));
  BOOST_TEST(responses(on, on.key)
             == json({{{"result", "would_deadlock ok"}}}));
  BOOST_TEST(responses(on, other) == json({{{"result", "would_deadlock"}}}));
}

// -- the handle ----

BOOST_AUTO_TEST_CASE(iterating_throws_the_error_of_the_run_at_the_end) {
  agent_fixture on;
  std::string line;
  const auto code = code_thrown_by([&] {
    for (const auto& said : on.runtime.run(
           sequential("all", {says("a", "1"), fails("b")}), on.key, "go"))
      line += said->text();
  });
  BOOST_TEST(line == "1");
  BOOST_TEST(code == "callback_failed");
}

BOOST_AUTO_TEST_CASE(the_error_comes_once_and_then_the_end) {
  agent_fixture on;
  auto run = on.runtime.run(fails("a"), on.key, "go");
  BOOST_TEST(code_of(run.next().get()) == "callback_failed");
  BOOST_TEST((run.next().value() == nullptr));
  BOOST_TEST(code_of(run.wait().get()) == "callback_failed");
}

BOOST_AUTO_TEST_CASE(events_can_be_taken_with_completions) {
  agent_fixture on;
  auto run = on.runtime.run(
    sequential("all", {says("a", "1"), says("b", "2")}), on.key, "go");
  std::string line;
  for (;;) {
    answers<event_ptr> next;
    run.next().then(next.next());
    const auto said = next.await().front().value();
    if (!said)
      break;
    line += said->text();
  }
  BOOST_TEST(line == "12");
}

BOOST_AUTO_TEST_CASE(a_slow_consumer_gets_everything_after_the_end) {
  agent_fixture on;
  auto run = on.runtime.run(
    loop({.name = "again", .max_iterations = 500}, {says("a", "1")}),
    on.key,
    "go");
  answers<void> ended;
  run.wait().then(ended.next());
  BOOST_TEST(code_of(ended.await().front()) == "ok");
  int count = 0;
  while (run.next().value())
    ++count;
  BOOST_TEST(count == 500);
}

BOOST_AUTO_TEST_CASE(dropping_the_handle_cancels_and_detaching_does_not) {
  agent_fixture on;
  const auto model = std::make_shared<held_model>();
  { const auto dropped = on.runtime.run(asks("a", model), on.key, "go"); }
  // The next run works, so the first one has ended.
  BOOST_TEST(on.perform(says("b", "1")) == "b=1 | ok");
  const auto other = std::make_shared<held_model>();
  on.runtime.run(asks("c", other), on.key, "go").detach();
  other->asked.await(1);
  auto behind = on.runtime.run(says("d", "2"), on.key, "go");
  other->answer("done");
  BOOST_TEST(agent_fixture::show(std::move(behind)) == "d=2 | ok");
  BOOST_TEST(std::ranges::count(on.texts(on.key), "done") == 1);
}

BOOST_AUTO_TEST_CASE(an_observer_is_told_of_every_agent) {
  std::mutex mutex;
  std::vector<std::string> told;
  const plugin observer{
    .name = "observer", .on_agent = [&](std::string_view name, bool started) {
      const std::lock_guard guard(mutex);
      told.push_back((started ? "+" : "-") + std::string(name));
    }};
  agent_fixture on({.plugins = {observer}});
  on.perform(sequential("all", {says("a", "1"), says("b", "2")}));
  BOOST_TEST(
    told == std::vector<std::string>({"+all", "+a", "-a", "+b", "-b", "-all"}),
    boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(what_an_agent_starts_on_its_own_may_outlive_it) {
  agent_fixture on;
  tally ended;
  std::string code;
  const auto other = on.open("other");
  const auto starter = custom("starter", [&](invocation_context&) -> agent_run {
    troupe::start(
      [](session_service& sessions,
         session_key key,
         event said,
         std::string* into) -> task<> {
        for (int count = 0; count < 50; ++count) {
          const auto stored = co_await sessions.append_event(key, said);
          *into = code_of(stored);
        }
      }(on.sessions(), other, change({{"k", 1}}), &code),
      [&](const std::exception_ptr&) { ended.add(); });
    co_return;
  });
  BOOST_TEST(on.perform(starter) == "| ok");
  ended.await(1);
  BOOST_TEST(code == "ok");
  BOOST_TEST(on.events(other).size() == 50U);
}

// -- many at once ----

BOOST_AUTO_TEST_CASE(a_thousand_runs_waiting_for_slow_models_hold_no_threads) {
  const auto time = std::make_shared<watched_environment>(1);
  agent_fixture on(runtime_fixture::in(time));
  const auto before = thread_count();
  const auto agent = asks(
    "slow", scripted({{"slow", {{.text = "at last", .latency = 60'000ms}}}}));
  std::vector<run> all;
  for (int count = 0; count < 1'000; ++count)
    all.push_back(
      on.runtime.run(agent, on.open("s" + std::to_string(count)), "go"));
  time->timers.await(1'000);
  BOOST_TEST(thread_count() <= before);
  time->advance(60s);
  for (auto& each : all)
    BOOST_TEST(agent_fixture::show(std::move(each)) == "slow=at last | ok");
}

BOOST_AUTO_TEST_CASE(all_lanes_of_a_large_fan_out_wait_at_the_same_time) {
  agent_fixture on;
  const auto model = std::make_shared<held_model>();
  std::vector<agent> lanes;
  for (int count = 0; count < 300; ++count)
    lanes.push_back(asks("a" + std::to_string(count), model));
  auto run = on.runtime.run(parallel("lanes", lanes), on.key, "go");
  model->asked.await(300);
  model->answer("done");
  BOOST_TEST(code_of(run.wait().get()) == "ok");
  BOOST_TEST(on.events(on.key).size() == 301U);
}

BOOST_AUTO_TEST_CASE(a_large_fan_out_ends_when_its_first_lane_fails) {
  agent_fixture on;
  for (const bool first : {true, false}) {
    std::vector<agent> lanes;
    for (int count = 0; count < 300; ++count)
      lanes.push_back(adds("a" + std::to_string(count), "n"));
    lanes.insert(first ? lanes.begin() : lanes.end(), fails("broken"));
    BOOST_TEST(
      code_of(
        on.runtime.run(parallel("lanes", lanes), on.key, "go").wait().get())
      == "callback_failed");
  }
  BOOST_TEST(on.perform(says("b", "1")) == "b=1 | ok");
}

BOOST_AUTO_TEST_CASE(no_more_runs_than_allowed_are_under_way) {
  runtime_options few;
  few.runs_max = 2;
  agent_fixture on(few);
  const auto model = std::make_shared<held_model>();
  const auto slow = asks("slow", model);
  auto first = on.runtime.run(slow, on.open("a"), "go");
  auto second = on.runtime.run(slow, on.open("b"), "go");
  model->asked.await(2);
  BOOST_TEST(on.perform(says("c", "3")) == "| busy");
  model->answer("done");
  BOOST_TEST(agent_fixture::show(std::move(first)) == "slow=done | ok");
  BOOST_TEST(agent_fixture::show(std::move(second)) == "slow=done | ok");
  BOOST_TEST(on.perform(says("c", "3")) == "c=3 | ok");
}

BOOST_AUTO_TEST_CASE(what_a_running_agent_emits_is_never_refused_as_too_much) {
  runtime_options few;
  few.session_appends_max = 1;
  few.runtime_appends_max = 1;
  few.session_bytes_max = 10;
  agent_fixture on(few);
  std::vector<agent> lanes;
  for (int count = 0; count < 50; ++count)
    lanes.push_back(says("a" + std::to_string(count), "words"));
  BOOST_TEST(
    code_of(on.runtime.run(parallel("lanes", lanes), on.key, "go").wait().get())
    == "ok");
  BOOST_TEST(on.events(on.key).size() == 51U);
}

BOOST_AUTO_TEST_CASE(many_short_runs_on_many_sessions_end) {
  agent_fixture on;
  const auto agent
    = sequential("all",
                 {adds("a", "app:n"),
                  parallel("lanes", {adds("b", "user:n"), adds("c", "n")})});
  std::vector<session_key> keys;
  for (int count = 0; count < 10; ++count)
    keys.push_back(on.open("s" + std::to_string(count)));
  std::atomic<int> good = 0;
  on_threads(6, [&](std::size_t index) {
    for (std::size_t count = 0; count < 50; ++count)
      good += on.runtime.run(agent, keys[(index + count) % keys.size()], "go")
                .wait()
                .get()
                .has_value();
  });
  BOOST_TEST(good == 300);
  BOOST_TEST(on.app_state() == json({{"n", 300}}));
  BOOST_TEST(on.user_state() == json({{"n", 300}}));
}

BOOST_AUTO_TEST_SUITE_END()
