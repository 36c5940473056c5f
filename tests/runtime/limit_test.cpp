// The limits of a run: how many tools run at the same time, and how long models
// and tools may take.

#include "troupe/agents/agent_tool.hpp"

#include "play.hpp"
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <latch>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;

namespace {

scripted_reply many_calls(const std::string& name, std::size_t count) {
  scripted_reply reply;
  for (std::size_t index = 0; index < count; ++index)
    reply.function_calls.push_back({"", name, json::object()});
  return reply;
}

/// Counts how many are inside at the same time.
struct crowd {
  std::atomic<int> inside{0};
  std::atomic<int> most{0};

  void enter() {
    const auto now = ++inside;
    auto before = most.load();
    while (before < now && !most.compare_exchange_weak(before, now)) {
    }
  }
};

} // namespace

BOOST_AUTO_TEST_SUITE(limits_of_runs)

BOOST_AUTO_TEST_CASE(tools_of_all_lanes_share_the_places_of_their_run) {
  play on;
  const auto seen = std::make_shared<crowd>();
  const auto work = tool_of("work", [seen](const json&, tool_context&) -> json {
    seen->enter();
    std::this_thread::yield();
    --seen->inside;
    return 1;
  });
  std::vector<agent> lanes;
  for (int count = 0; count < 4; ++count) {
    const auto name = "a" + std::to_string(count);
    lanes.push_back(
      asks(name,
           scripted({{name, {many_calls("work", 10), {.text = "done"}}}}),
           {work}));
  }
  const auto line
    = on.perform(parallel("p", std::move(lanes)), {.tool_calls_max = 2});
  BOOST_TEST(line.ends_with("| ok"), line);
  BOOST_TEST(responses(on, on.key).size() == 40U);
  BOOST_TEST(seen->most <= 2);
}

BOOST_AUTO_TEST_CASE(an_agent_that_is_a_tool_takes_no_place_from_its_tools) {
  play on;
  const auto work
    = tool_of("work", [](const json&, tool_context&) -> json { return 1; });
  const auto inner
    = asks("inner",
           scripted({{"inner", {many_calls("work", 3), {.text = "in"}}}}),
           {work});
  const auto root = asks(
    "a",
    scripted({{"a", {calling("inner", {{"request", "x"}}), {.text = "done"}}}}),
    {agent_tool(inner)});
  BOOST_TEST(on.perform(root, {.tool_calls_max = 1}) == "a= a= a=done | ok");
  BOOST_TEST(responses(on, on.key) == json({{{"result", "in"}}}));
}

BOOST_AUTO_TEST_CASE(limits_with_which_nothing_could_run_are_refused) {
  play on;
  BOOST_TEST(on.perform(says("a", "x"), {.tool_calls_max = 0})
             == "| invalid_argument");
  BOOST_TEST(on.perform(says("a", "x"), {.model_timeout = 0ms})
             == "| invalid_argument");
  BOOST_TEST(on.perform(says("a", "x"), {.tool_timeout = -1ms})
             == "| invalid_argument");
}

// -- models ------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(a_model_that_stalls_is_given_up_and_asked_to_stop) {
  const auto time = std::make_shared<watched_environment>(1);
  play on(stage::in(time));
  const auto model = std::make_shared<held_model>();
  auto started
    = on.runtime.run(asks("a", model), on.key, "go", {.model_timeout = 30ms});
  model->asked.await(1);
  const auto asked = model->requests();
  BOOST_TEST(!asked[0].stop.stop_requested());
  time->advance(30ms);
  BOOST_TEST(play::follow(started) == "| deadline_exceeded");
  BOOST_TEST(play::last_reason().find("model 'held' of agent 'a'")
               != std::string::npos,
             play::last_reason());
  BOOST_TEST(asked[0].stop.stop_requested());
  // What it says now is too late, and harms nobody.
  model->answer("late");
  BOOST_TEST(on.events(on.key).size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_model_in_time_is_not_disturbed) {
  const auto time = std::make_shared<watched_environment>(1);
  play on(stage::in(time));
  const auto model = std::make_shared<held_model>();
  auto started
    = on.runtime.run(asks("a", model), on.key, "go", {.model_timeout = 30ms});
  model->asked.await(1);
  time->advance(29ms);
  model->answer("in time");
  BOOST_TEST(play::follow(started) == "a=in time | ok");
  time->advance(1h);
}

BOOST_AUTO_TEST_CASE(a_callback_may_stand_in_for_a_model_that_stalls) {
  const auto time = std::make_shared<watched_environment>(1);
  play on(stage::in(time));
  const auto model = std::make_shared<held_model>();
  const auto root = llm(
    {.name = "a",
     .model = model,
     .on_model_error = {[](callback_context&,
                           const model_request&,
                           const error& why) -> std::optional<model_response> {
       return model_response(text("{}", to_string(why.code())));
     }}});
  auto started = on.runtime.run(root, on.key, "go", {.model_timeout = 30ms});
  model->asked.await(1);
  time->advance(30ms);
  BOOST_TEST(play::follow(started) == "a=deadline_exceeded | ok");
}

BOOST_AUTO_TEST_CASE(no_callback_stands_in_for_a_run_whose_time_is_up) {
  const auto time = std::make_shared<watched_environment>(1);
  play on(stage::in(time));
  const auto model = std::make_shared<held_model>();
  std::atomic<int> called = 0;
  const auto root = llm(
    {.name = "a",
     .model = model,
     .on_model_error = {[&](callback_context&,
                            const model_request&,
                            const error&) -> std::optional<model_response> {
       ++called;
       return model_response(text("x"));
     }}});
  auto started = on.runtime.run(root, on.key, "go", {.deadline = 30ms});
  model->asked.await(1);
  time->advance(30ms);
  BOOST_TEST(play::follow(started) == "| deadline_exceeded");
  BOOST_TEST(called == 0);
}

// -- tools -------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(a_tool_without_a_time_of_its_own_has_that_of_its_run) {
  const auto time = std::make_shared<watched_environment>(1);
  play on(stage::in(time));
  const auto release = std::make_shared<std::latch>(1);
  const auto started = std::make_shared<tally>();
  const auto stopped = std::make_shared<tally>();
  const auto waits = [=](const json&, tool_context& context) -> json {
    const std::stop_callback told(context.stop(), [&] { stopped->add(); });
    started->add();
    release->wait();
    return "late";
  };
  const auto slow = tool_of("slow", waits);
  const tool patient({.name = "patient", .run = waits, .timeout = 1h});
  scripted_reply both;
  both.function_calls
    = {{"", "slow", json::object()}, {"", "patient", json::object()}};
  auto run = on.runtime.run(
    asks("a", scripted({{"a", {both, {.text = "done"}}}}), {slow, patient}),
    on.key,
    "go",
    {.tool_timeout = 50ms});
  started->await(2);
  time->advance(50ms);
  stopped->await(1);
  release->count_down();
  BOOST_TEST(play::follow(run) == "a= a= a=done | ok");
  const auto told = responses(on, on.key);
  BOOST_TEST(told[0].value("error", "").find("50 ms") != std::string::npos,
             told.dump());
  BOOST_TEST(told[1] == json({{"result", "late"}}));
  on.runtime.shut_down().value();
}

BOOST_AUTO_TEST_SUITE_END()
