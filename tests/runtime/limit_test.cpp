// The limits of a run: concurrent tools, and the time of models and tools.

#include "troupe/agents/agent_tool.hpp"
#include "troupe/stores/artifact_store.hpp"

#include "agent_fixture.hpp"
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <latch>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(limits_of_runs)

namespace {

scripted_reply many_calls(const std::string& name, std::size_t count) {
  scripted_reply reply;
  for (std::size_t index = 0; index < count; ++index)
    reply.function_calls.push_back({"", name, json::object()});
  return reply;
}

/// Counts the greatest number of tools running at the same time.
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

BOOST_AUTO_TEST_CASE(tools_of_all_lanes_share_the_places_of_their_run) {
  agent_fixture on;
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
  agent_fixture on;
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
  agent_fixture on;
  BOOST_TEST(on.perform(says("a", "x"), {.tool_calls_max = 0})
             == "| invalid_argument");
  BOOST_TEST(on.perform(says("a", "x"), {.model_timeout = 0ms})
             == "| invalid_argument");
  BOOST_TEST(on.perform(says("a", "x"), {.tool_timeout = -1ms})
             == "| invalid_argument");
}

// -- models ----

BOOST_AUTO_TEST_CASE(a_model_that_stalls_is_given_up_and_asked_to_stop) {
  const auto time = std::make_shared<watched_environment>(1);
  agent_fixture on(runtime_fixture::in(time));
  const auto model = std::make_shared<held_model>();
  auto started
    = on.runtime.run(asks("a", model), on.key, "go", {.model_timeout = 30ms});
  model->asked.await(1);
  const auto asked = model->requests();
  BOOST_TEST(!asked[0].stop.stop_requested());
  time->advance(30ms);
  BOOST_TEST(agent_fixture::follow(started) == "| deadline_exceeded");
  BOOST_TEST(agent_fixture::last_reason().find("model 'held' of agent 'a'")
               != std::string::npos,
             agent_fixture::last_reason());
  BOOST_TEST(asked[0].stop.stop_requested());
  // A late answer has no effect.
  model->answer("late");
  BOOST_TEST(on.events(on.key).size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_model_in_time_is_not_disturbed) {
  const auto time = std::make_shared<watched_environment>(1);
  agent_fixture on(runtime_fixture::in(time));
  const auto model = std::make_shared<held_model>();
  auto started
    = on.runtime.run(asks("a", model), on.key, "go", {.model_timeout = 30ms});
  model->asked.await(1);
  time->advance(29ms);
  model->answer("in time");
  BOOST_TEST(agent_fixture::follow(started) == "a=in time | ok");
  time->advance(1h);
}

BOOST_AUTO_TEST_CASE(a_callback_may_stand_in_for_a_model_that_stalls) {
  const auto time = std::make_shared<watched_environment>(1);
  agent_fixture on(runtime_fixture::in(time));
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
  BOOST_TEST(agent_fixture::follow(started) == "a=deadline_exceeded | ok");
}

BOOST_AUTO_TEST_CASE(no_callback_stands_in_for_a_run_whose_time_is_up) {
  const auto time = std::make_shared<watched_environment>(1);
  agent_fixture on(runtime_fixture::in(time));
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
  BOOST_TEST(agent_fixture::follow(started) == "| deadline_exceeded");
  BOOST_TEST(called == 0);
}

// -- tools ----

BOOST_AUTO_TEST_CASE(a_tool_without_a_time_of_its_own_has_that_of_its_run) {
  const auto time = std::make_shared<watched_environment>(1);
  agent_fixture on(runtime_fixture::in(time));
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
  BOOST_TEST(agent_fixture::follow(run) == "a= a= a=done | ok");
  const auto told = responses(on, on.key);
  BOOST_TEST(told[0].value("error", "").find("50 ms") != std::string::npos,
             told.dump());
  BOOST_TEST(told[1] == json({{"result", "late"}}));
  on.runtime.shut_down().value();
}

BOOST_AUTO_TEST_CASE(a_tool_that_was_given_up_gives_its_place_back) {
  const auto time = std::make_shared<watched_environment>(1);
  agent_fixture on(runtime_fixture::in(time));
  const auto release = std::make_shared<std::latch>(1);
  const auto started = std::make_shared<tally>();
  const auto hangs = tool_of("hangs", [=](const json&, tool_context&) -> json {
    started->add();
    release->wait();
    return 1;
  });
  const auto look = tool_of(
    "look", [](const json&, tool_context&) -> json { return "seen"; });
  auto run = on.runtime.run(
    asks(
      "a",
      scripted({{"a", {calling("hangs"), calling("look"), {.text = "done"}}}}),
      {hangs, look}),
    on.key,
    "go",
    {.tool_calls_max = 1, .tool_timeout = 50ms});
  started->await(1);
  time->advance(50ms);
  BOOST_TEST(agent_fixture::follow(run) == "a= a= a= a= a=done | ok");
  BOOST_TEST(responses(on, on.key)[1] == json({{"result", "seen"}}));
  release->count_down();
  on.runtime.shut_down().value();
}

BOOST_AUTO_TEST_CASE(
  places_of_runs_and_of_tools_are_not_waited_for_in_circles) {
  agent_fixture on;
  const auto inner_key = on.open("inner");
  const tool narrow(
    {.name = "narrow",
     .run = [](const json&, tool_context&) -> json { return 1; },
     .calls_max = 1});
  const auto inner
    = asks("inner",
           scripted({{"inner", {calling("narrow"), {.text = "in"}}}}),
           {narrow});
  auto* runtime = &on.runtime;
  const auto nested
    = tool_of("nested", [=](const json&, tool_context&) -> json {
        auto started = runtime->run(inner, inner_key, "go");
        return code_of(started.wait().get());
      });
  scripted_reply both;
  both.function_calls
    = {{"", "nested", json::object()}, {"", "narrow", json::object()}};
  BOOST_TEST(
    on.perform(
      asks("a", scripted({{"a", {both, {.text = "done"}}}}), {nested, narrow}),
      {.tool_calls_max = 1, .deadline = 20s})
    == "a= a= a=done | ok");
}

BOOST_AUTO_TEST_CASE(a_model_that_answers_when_it_is_told_to_stop_is_too_late) {
  const auto time = std::make_shared<watched_environment>(1);
  agent_fixture on(runtime_fixture::in(time));
  using stopper = std::stop_callback<std::function<void()>>;
  const auto stops = std::make_shared<std::vector<std::unique_ptr<stopper>>>();
  const auto asked = std::make_shared<tally>();
  const auto polite = std::make_shared<made_model>(
    [=](const model_request& request, const model_reply& reply) {
      stops->push_back(std::make_unique<stopper>(request.stop, [reply] {
        reply(error(errc::cancelled, "told to stop"));
      }));
      asked->add();
    });
  auto run
    = on.runtime.run(asks("a", polite), on.key, "go", {.model_timeout = 30ms});
  asked->await(1);
  time->advance(30ms);
  BOOST_TEST(agent_fixture::follow(run) == "| deadline_exceeded");
  on.runtime.shut_down().value();
}

BOOST_AUTO_TEST_CASE(what_a_given_up_tool_does_is_seen_by_nobody) {
  const auto time = std::make_shared<watched_environment>(1);
  agent_fixture on(runtime_fixture::in(time));
  const auto release = std::make_shared<std::latch>(1);
  const auto started = std::make_shared<tally>();
  const auto ended = std::make_shared<tally>();
  const auto slow
    = tool_of("slow", [=](const json&, tool_context& context) -> json {
        context.state().set("ghost", 1);
        started->add();
        release->wait();
        auto files = context.artifacts();
        if (code_of(files.save("ghost", part("x")).get()) == "cancelled"
            && code_of(files.remove("ghost").get()) == "cancelled")
          ended->add();
        return 1;
      });
  auto run = on.runtime.run(
    asks("a", scripted({{"a", {calling("slow"), {.text = "done"}}}}), {slow}),
    on.key,
    "go",
    {.tool_timeout = 50ms});
  started->await(1);
  time->advance(50ms);
  BOOST_TEST(agent_fixture::follow(run) == "a= a= a=done | ok");
  release->count_down();
  ended->await(1);
  BOOST_TEST(on.runtime.artifacts()->list(on.key).value().empty());
  BOOST_TEST(on.state_now() == json::object());
  on.runtime.shut_down().value();
}

BOOST_AUTO_TEST_CASE(
  a_cancelled_run_does_not_wait_for_tools_that_have_not_begun) {
  // Time stands still, so the grace period never ends.
  const auto time = std::make_shared<watched_environment>(1);
  const auto held = std::make_shared<tally>();
  auto options = runtime_fixture::in(time);
  options.plugins.push_back(
    {.name = "observer",
     .on_agent = [held](std::string_view name, bool started) {
       if (name == "b" && started)
         held->add();
     }});
  agent_fixture on(std::move(options));
  const auto release = std::make_shared<std::latch>(1);
  const auto started = std::make_shared<tally>();
  const tool narrow({.name = "narrow",
                     .run = [=](const json&, tool_context&) -> json {
                       started->add();
                       release->wait();
                       return 1;
                     },
                     .calls_max = 1});
  const auto agent_of = [&](const std::string& name) {
    return asks(name,
                scripted({{name, {calling("narrow"), {.text = "done"}}}}),
                {narrow});
  };
  auto holds = on.runtime.run(agent_of("a"), on.key, "go");
  started->await(1);
  auto waits = on.runtime.run(agent_of("b"), on.open("other"), "go");
  held->await(1);
  waits.next().value();
  waits.cancel();
  BOOST_TEST(code_of(waits.wait().get()) == "cancelled");
  release->count_down();
  BOOST_TEST(code_of(holds.wait().get()) == "ok");
}

// -- limits that allow nothing ----

BOOST_AUTO_TEST_CASE(limits_of_nothing_and_null_stores_are_refused) {
  const auto refused = [](const std::function<void(runtime_options&)>& change) {
    runtime_options options;
    change(options);
    return code_of(runtime::open(std::move(options))) == "invalid_argument";
  };
  BOOST_TEST(refused([](runtime_options& of) { of.append_wait_max = 0ns; }));
  BOOST_TEST(refused([](runtime_options& of) { of.session_idle_max = -1ns; }));
  BOOST_TEST(refused([](runtime_options& of) { of.store_log_bytes_max = 0; }));
  BOOST_TEST(
    refused([](runtime_options& of) { of.store = std::shared_ptr<store>(); }));
  BOOST_TEST(refused([](runtime_options& of) {
    of.artifacts = std::shared_ptr<artifact_store>();
  }));
  BOOST_TEST(!refused([](runtime_options& of) {
    of.append_wait_max = std::nullopt;
    of.session_idle_max = std::nullopt;
  }));
}

BOOST_AUTO_TEST_SUITE_END()
