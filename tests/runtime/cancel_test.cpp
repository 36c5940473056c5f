// Ending runs from outside: cancelling at any moment, deadlines, removed
// sessions, and tools that do not stop.

#include "troupe/runtime/runtime.hpp"

#include "../random.hpp"
#include "agent_fixture.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <condition_variable>
#include <latch>

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(cancelling, *boost::unit_test::timeout(600))

namespace {

agent sleeps(const std::string& name, std::chrono::nanoseconds time) {
  return custom(name, [time](invocation_context& context) -> agent_run {
    co_await context.sleep(time);
    co_await context.emit(text("woke"));
  });
}

// A tool that waits until it is asked to stop.
tool waits_for_stop(std::shared_ptr<tally> started) {
  return tool_of("waits",
                 [started](const json&, tool_context& context) -> json {
                   std::mutex mutex;
                   std::condition_variable_any changed;
                   std::unique_lock guard(mutex);
                   started->add();
                   changed.wait(guard, context.stop(), [] { return false; });
                   return "stopped";
                 });
}

// Agents of all kinds that count their steps, so that a test can cancel at each
// of them.
class obstacle_course : public agent_fixture {
public:
  obstacle_course() {
    const auto step = [this](int work) {
      ++steps;
      steps.notify_all();
      for (int spin = 0; spin < work; ++spin)
        std::this_thread::yield();
    };
    const auto model = std::make_shared<made_model>(
      [step](const model_request& request, const model_reply& reply) {
        step(0);
        // The model calls the tools first, and answers a little later.
        const bool tools
          = !request.contents.back()->parts.empty()
            && request.contents.back()->parts[0].response() == nullptr;
        model_response answer(text("answer"));
        if (tools)
          answer.content.parts = {function_call{"", "work", json::object()},
                                  function_call{"", "work", json::object()}};
        request.environment->call_after(std::chrono::microseconds(300),
                                        [reply, answer] { reply(answer); });
      });
    const auto work
      = tool_of("work", [step](const json&, tool_context& context) -> json {
          context.state().add("app:worked", 1);
          step(3);
          return "worked";
        });
    const auto naps = [step](const std::string& name) {
      return custom(name, [step](invocation_context& context) -> agent_run {
        for (int count = 0; count < 3; ++count) {
          step(0);
          context.state().add("temp:n", 1);
          context.state().add("user:n", 1);
          co_await context.sleep(std::chrono::microseconds(200));
          co_await context.emit(text("{}", count));
        }
      });
    };
    const auto lanes
      = parallel("lanes",
                 {naps("nap_one"),
                  asks("model_two", model, {work}),
                  parallel("more", {naps("nap_three"), naps("nap_four")})});
    course = sequential("course",
                        {asks("model_one", model, {work}),
                         loop({.name = "again", .max_iterations = 2}, {lanes}),
                         naps("nap_five")});
  }

  /// Cancels the run after so many steps.
  std::string run_until(int step_count, run_policy policy) {
    steps = 0;
    auto started = runtime.run(*course, key, "go", {.policy = policy});
    auto behind = runtime.run(says("behind", "x"), key, "next");
    for (int seen = 0; (seen = steps) < step_count;)
      steps.wait(seen);
    started.cancel();
    const auto code = code_of(started.wait().get());
    // No part of the run continues after its end.
    const auto after = steps.load();
    BOOST_TEST(code_of(behind.wait().get()) == "ok");
    BOOST_TEST(steps == after);
    return code;
  }

  std::optional<agent> course;
  std::atomic<int> steps = 0;
};

} // namespace

BOOST_AUTO_TEST_CASE(a_run_can_be_cancelled_at_any_step) {
  obstacle_course on;
  random_source random(20'260'801);
  int cancelled = 0;
  for (int round = 0; round < 300; ++round) {
    const auto code
      = on.run_until(static_cast<int>(random.below(34)), run_policy::queue);
    BOOST_TEST((code == "cancelled" || code == "ok"));
    cancelled += code == "cancelled";
  }
  BOOST_TEST(cancelled > 200);
  const auto now = on.fetch(on.key);
  BOOST_TEST(replay(now.events()) == now.state().all());
  BOOST_TEST(on.append(on.key, {{"k", 1}}) == "ok");
}

BOOST_AUTO_TEST_CASE(runs_beside_each_other_are_cancelled_one_by_one) {
  obstacle_course on;
  random_source random(7);
  for (int round = 0; round < 60; ++round) {
    std::vector<run> all;
    on.steps = 0;
    for (int count = 0; count < 4; ++count)
      all.push_back(on.runtime.run(
        *on.course, on.key, "go", {.policy = run_policy::interleave}));
    const auto until = static_cast<int>(random.below(60));
    for (int seen = 0; (seen = on.steps) < until;)
      on.steps.wait(seen);
    all[random.below(4)].cancel();
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(random.below(4)));
    for (auto& each : all) {
      if (random.one_in(2))
        each.cancel();
      const auto code = code_of(each.wait().get());
      BOOST_TEST((code == "cancelled" || code == "ok"));
    }
  }
  BOOST_TEST(on.perform(says("a", "1")) == "a=1 | ok");
}

BOOST_AUTO_TEST_CASE(what_was_committed_before_stays) {
  agent_fixture on;
  const auto model = std::make_shared<held_model>();
  auto run = on.runtime.run(
    sequential("all", {says("a", "1"), asks("b", model)}), on.key, "go");
  model->asked.await(1);
  run.cancel();
  run.cancel();
  BOOST_TEST(agent_fixture::show(std::move(run)) == "a=1 | cancelled");
  BOOST_TEST(on.fetch(on.key).revision() == 2U);
  model->answer("too late");
  BOOST_TEST(on.perform(says("c", "2")) == "c=2 | ok");
  BOOST_TEST(on.fetch(on.key).revision() == 4U);
  BOOST_TEST(model->requests().front().stop.stop_requested());
}

BOOST_AUTO_TEST_CASE(after_a_cancellation_every_await_throws) {
  agent_fixture on;
  const auto model = std::make_shared<held_model>();
  std::vector<std::string> codes;
  const auto stubborn
    = custom("stubborn", [&](invocation_context& context) -> agent_run {
        const auto inner = says("inner", "x");
        for (int which = 0; which < 6; ++which) {
          try {
            if (which < 2)
              co_await context.ask(model, model_request());
            else if (which == 2)
              co_await context.sleep(1h);
            else if (which == 3)
              co_await context.emit(text("x"));
            else if (which == 4)
              co_await context.refresh();
            else
              co_await context.run(inner);
            codes.push_back("ok");
          } catch (const error& failure) {
            codes.push_back(std::string(to_string(failure.code())));
          }
        }
      });
  auto run = on.runtime.run(stubborn, on.key, "go");
  model->asked.await(1);
  run.cancel();
  static_cast<void>(run.wait().get());
  BOOST_TEST(codes == std::vector<std::string>(6, "cancelled"),
             boost::test_tools::per_element());
  BOOST_TEST(on.fetch(on.key).revision() == 1U);
}

BOOST_AUTO_TEST_CASE(a_run_that_waits_for_its_turn_can_be_cancelled) {
  agent_fixture on;
  const auto model = std::make_shared<held_model>();
  auto first = on.runtime.run(asks("first", model), on.key, "go");
  model->asked.await(1);
  auto second = on.runtime.run(says("second", "x"), on.key, "never");
  auto third = on.runtime.run(says("third", "y"), on.key, "next");
  second.cancel();
  BOOST_TEST(agent_fixture::show(std::move(second)) == "| cancelled");
  model->answer("done");
  BOOST_TEST(code_of(first.wait().get()) == "ok");
  BOOST_TEST(agent_fixture::show(std::move(third)) == "third=y | ok");
  BOOST_TEST(on.texts(on.key)
               == std::vector<std::string>({"go", "done", "next", "y"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(queued_runs_that_come_and_go_leave_the_session_usable) {
  agent_fixture on;
  random_source random(3);
  for (int round = 0; round < 100; ++round) {
    std::vector<run> all;
    for (int count = 0; count < 6; ++count) {
      all.push_back(on.runtime.run(says("a", "x"), on.key, "go"));
      if (random.one_in(2))
        all[random.below(all.size())].cancel();
    }
    for (auto& each : all) {
      const auto code = code_of(each.wait().get());
      BOOST_TEST((code == "ok" || code == "cancelled"));
    }
  }
  BOOST_TEST(on.perform(says("a", "1"), {.policy = run_policy::reject})
             == "a=1 | ok");
}

// -- tools ----

BOOST_AUTO_TEST_CASE(a_tool_is_asked_to_stop_and_awaited) {
  agent_fixture on;
  const auto started = std::make_shared<tally>();
  auto run = on.runtime.run(
    asks("a", scripted({{"a", {calling("waits")}}}), {waits_for_stop(started)}),
    on.key,
    "go");
  started->await(1);
  run.cancel();
  BOOST_TEST(agent_fixture::show(std::move(run)) == "a= | cancelled");
  BOOST_TEST(agent_fixture::last_reason().find("abandoned")
             == std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_tool_that_does_not_stop_is_abandoned_and_named) {
  const auto time = std::make_shared<watched_environment>(1);
  const auto release = std::make_shared<std::latch>(1);
  const auto started = std::make_shared<tally>();
  agent_fixture on(runtime_fixture::in(time));
  const auto deaf
    = tool_of("deaf", [=](const json&, tool_context& context) -> json {
        started->add();
        release->wait();
        context.state().set("app:late", 1);
        return "late";
      });
  auto run
    = on.runtime.run(asks("a", scripted({{"a", {calling("deaf")}}}), {deaf}),
                     on.key,
                     "go",
                     {.grace = 100ms});
  started->await(1);
  run.cancel();
  time->timers.await(1);
  time->advance(100ms);
  BOOST_TEST(agent_fixture::show(std::move(run)) == "a= | cancelled");
  BOOST_TEST(agent_fixture::last_reason().find("deaf") != std::string::npos);
  BOOST_TEST(on.perform(says("b", "1")) == "b=1 | ok");
  release->count_down();
  on.runtime.shut_down().value();
}

// -- deadlines ----

BOOST_AUTO_TEST_CASE(a_run_ends_at_its_deadline) {
  const auto time = std::make_shared<watched_environment>(1);
  agent_fixture on(runtime_fixture::in(time));
  auto run = on.runtime.run(sleeps("a", 1h), on.key, "go", {.deadline = 500ms});
  time->timers.await(2);
  time->advance(499ms);
  BOOST_TEST(on.append(on.key, {{"k", 1}}) == "ok");
  time->advance(1ms);
  BOOST_TEST(agent_fixture::show(std::move(run)) == "| deadline_exceeded");
  BOOST_TEST(on.perform(says("b", "1"), {.deadline = 500ms}) == "b=1 | ok");
  time->advance(2h);
}

BOOST_AUTO_TEST_CASE(a_deadline_ends_lanes_and_queued_runs_too) {
  const auto time = std::make_shared<watched_environment>(1);
  agent_fixture on(runtime_fixture::in(time));
  auto first
    = on.runtime.run(parallel("lanes", {sleeps("a", 1h), sleeps("b", 1h)}),
                     on.key,
                     "go",
                     {.deadline = 500ms});
  time->timers.await(3);
  auto queued
    = on.runtime.run(says("c", "1"), on.key, "go", {.deadline = 100ms});
  time->advance(100ms);
  BOOST_TEST(agent_fixture::show(std::move(queued)) == "| deadline_exceeded");
  time->advance(400ms);
  BOOST_TEST(agent_fixture::show(std::move(first)) == "| deadline_exceeded");
}

BOOST_AUTO_TEST_CASE(sleeping_takes_simulated_time) {
  const auto time = std::make_shared<watched_environment>(1);
  agent_fixture on(runtime_fixture::in(time));
  auto run = on.runtime.run(sleeps("a", 24h), on.key, "go");
  time->timers.await(1);
  time->advance(24h);
  BOOST_TEST(agent_fixture::show(std::move(run)) == "a=woke | ok");
}

// -- removed sessions ----

BOOST_AUTO_TEST_CASE(removing_a_session_ends_its_runs) {
  agent_fixture on;
  const auto model = std::make_shared<held_model>();
  auto first = on.runtime.run(asks("a", model), on.key, "go");
  model->asked.await(1);
  auto queued = on.runtime.run(says("b", "1"), on.key, "go");
  BOOST_TEST(on.sessions().remove(on.key).value());
  BOOST_TEST(agent_fixture::show(std::move(first)) == "| cancelled");
  BOOST_TEST(agent_fixture::show(std::move(queued)) == "| not_found");
  on.open();
  BOOST_TEST(on.perform(says("c", "2")) == "c=2 | ok");
}

BOOST_AUTO_TEST_CASE(removing_the_user_ends_runs_too) {
  agent_fixture on;
  const auto model = std::make_shared<held_model>();
  auto run = on.runtime.run(asks("a", model), on.key, "go");
  model->asked.await(1);
  BOOST_TEST(on.sessions().remove_user("press", "ann").value());
  BOOST_TEST(agent_fixture::show(std::move(run)) == "| cancelled");
}

BOOST_AUTO_TEST_CASE(sessions_are_removed_and_made_under_running_agents) {
  obstacle_course on;
  random_source random(11);
  for (int round = 0; round < 100; ++round) {
    on.steps = 0;
    auto run = on.runtime.run(*on.course, on.key, "go");
    auto queued = on.runtime.run(says("b", "1"), on.key, "go");
    const auto until = static_cast<int>(random.below(30));
    for (int seen = 0; (seen = on.steps) < until;)
      on.steps.wait(seen);
    BOOST_TEST(on.sessions().remove(on.key).value());
    on.open();
    auto fresh = on.runtime.run(says("c", "2"), on.key, "go");
    const auto code = code_of(run.wait().get());
    // An emit may find the session gone before the cancellation arrives.
    BOOST_TEST((code == "cancelled" || code == "not_found" || code == "ok"),
               code);
    const auto next = code_of(queued.wait().get());
    BOOST_TEST((next == "cancelled" || next == "not_found" || next == "ok"),
               next);
    BOOST_TEST(agent_fixture::show(std::move(fresh)) == "c=2 | ok");
    BOOST_TEST(on.fetch(on.key).revision() == 2U);
  }
}

// -- stop callbacks, late answers, abandoned threads ----

BOOST_AUTO_TEST_CASE(a_stop_callback_may_answer) {
  agent_fixture on;
  tally asked;
  std::optional<std::stop_callback<std::function<void()>>> on_stop;
  const auto model = std::make_shared<made_model>(
    [&](const model_request& request, const model_reply& reply) {
      on_stop.emplace(request.stop, [reply] {
        model_response last(text("last words"));
        last.partial = true;
        reply(last);
        reply(error(errc::cancelled, "stopped"));
      });
      asked.add();
    });
  auto run = on.runtime.run(asks("a", model), on.key, "go");
  asked.await(1);
  run.cancel();
  BOOST_TEST(code_of(run.wait().get()) == "cancelled");
}

BOOST_AUTO_TEST_CASE(a_model_may_answer_when_everything_is_gone) {
  model_reply late;
  {
    agent_fixture on;
    tally asked;
    const auto model = std::make_shared<made_model>(
      [&](const model_request&, const model_reply& reply) {
        late = reply;
        asked.add();
      });
    auto run = on.runtime.run(asks("a", model), on.key, "go");
    asked.await(1);
  }
  model_response piece(text("too late"));
  piece.partial = true;
  late(piece);
  late(model_response(text("too late")));
}

BOOST_AUTO_TEST_CASE(a_timer_may_hold_the_last_of_a_runtime) {
  // The model's timer is still set when the runtime ends, and holds the last
  // reference.
  tally gone;
  {
    auto real = system_environment();
    auto* const time = real.get();
    agent_fixture on(runtime_fixture::in(std::shared_ptr<environment>(
      time, [real = std::move(real), &gone](environment*) mutable {
        real.reset();
        gone.add();
      })));
    const auto agent
      = asks("slow", scripted({{"slow", {{.text = "late", .latency = 20ms}}}}));
    auto run = on.runtime.run(agent, on.key, "go");
    run.cancel();
  }
  gone.await(1);
  BOOST_TEST(gone.count() == 1U);
}

BOOST_AUTO_TEST_CASE(tools_that_never_return_do_not_use_up_the_threads) {
  runtime_options one;
  one.tool_threads = 1;
  agent_fixture on(one);
  std::promise<void> freed;
  const auto free = freed.get_future().share();
  tally ended;
  tally stuck_now;
  const auto stuck = tool_of("stuck", [&](const json&, tool_context&) -> json {
    stuck_now.add();
    free.wait();
    ended.add();
    return "free";
  });
  const auto quick = tool_of(
    "quick", [](const json&, tool_context&) -> json { return "done"; });
  const auto caller = [](const std::string& name, const tool& which) {
    return asks(
      name,
      scripted({{name, {calling(which.name()), {.text = "answered"}}}}),
      {which});
  };
  for (std::size_t count = 1; count <= 3; ++count) {
    auto run = on.runtime.run(caller("a", stuck),
                              on.key,
                              "go",
                              {.grace = std::chrono::milliseconds(1)});
    stuck_now.await(count);
    run.cancel();
    BOOST_TEST(code_of(run.wait().get()) == "cancelled");
  }
  BOOST_TEST(
    code_of(on.runtime.run(caller("b", quick), on.key, "go").wait().get())
    == "ok");
  freed.set_value();
  ended.await(3);
}

BOOST_AUTO_TEST_CASE(a_deadline_of_nothing_ends_the_run_before_its_turn) {
  agent_fixture on;
  const auto model = std::make_shared<held_model>();
  auto first = on.runtime.run(asks("a", model), on.key, "go");
  model->asked.await(1);
  for (int round = 0; round < 200; ++round)
    BOOST_TEST(code_of(on.runtime
                         .run(says("b", "x"),
                              on.key,
                              "go",
                              {.deadline = std::chrono::milliseconds(0)})
                         .wait()
                         .get())
               == "deadline_exceeded");
  model->answer("done");
  BOOST_TEST(code_of(first.wait().get()) == "ok");
  BOOST_TEST(on.events(on.key).size() == 2U);
}

BOOST_AUTO_TEST_CASE(a_fan_out_without_lanes_is_refused) {
  agent_fixture on;
  BOOST_TEST(on.perform(parallel("lanes", {says("a", "1")}), {.lanes_max = 0})
             == "| invalid_argument");
}

BOOST_AUTO_TEST_SUITE_END()
