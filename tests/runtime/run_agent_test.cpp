// The kinds of agents, their models and their tools, in runs.

#include "troupe/runtime/runtime.hpp"

#include "agent_fixture.hpp"
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <latch>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(runs, *boost::unit_test::timeout(120))

// -- loops ----

BOOST_AUTO_TEST_CASE(a_loop_ends_at_its_limit) {
  agent_fixture on;
  BOOST_TEST(on.perform(loop({.name = "again", .max_iterations = 3},
                             {says("a", "1"), says("b", "2")}))
             == "a=1 b=2 a=1 b=2 a=1 b=2 | ok");
}

BOOST_AUTO_TEST_CASE(escalating_ends_all_enclosing_loops_but_no_sequence) {
  agent_fixture on;
  const auto inner = loop({.name = "inner"},
                          {says("a", "1"), escalates("up"), says("b", "2")});
  const auto within = sequential("within", {inner, says("c", "3")});
  const auto outer = loop({.name = "outer"}, {within, says("d", "4")});
  BOOST_TEST(on.perform(sequential("all", {outer, says("e", "5")}))
             == "a=1 up=up c=3 e=5 | ok");
}

BOOST_AUTO_TEST_CASE(a_lane_that_escalates_ends_the_loop_around_its_fan_out) {
  agent_fixture on;
  const auto line = on.perform(loop(
    {.name = "again", .max_iterations = 5},
    {parallel("lanes", {escalates("up"), says("a", "1")}), says("b", "2")}));
  BOOST_TEST(line.size() == std::string("up=up a=1 | ok").size());
}

BOOST_AUTO_TEST_CASE(a_tool_escalates_for_its_agent) {
  agent_fixture on;
  const auto model = scripted({{"asker", {calling("stop"), {.text = "done"}}}});
  const auto stop = tool_of("stop", [](const json&, tool_context& context) {
    context.actions().escalate = true;
    return json("ok");
  });
  const auto line
    = on.perform(loop({.name = "again", .max_iterations = 5},
                      {asks("asker", model, {stop}), says("b", "2")}));
  BOOST_TEST(line == "asker= asker= asker=done | ok");
}

BOOST_AUTO_TEST_CASE(an_endless_loop_that_never_waits_can_be_cancelled) {
  agent_fixture on;
  const auto nothing
    = custom("nothing", [](invocation_context&) -> agent_run { co_return; });
  auto run = on.runtime.run(loop({.name = "again"}, {nothing}), on.key, "go");
  run.cancel();
  BOOST_TEST(code_of(run.wait().get()) == "cancelled");
}

// -- fan-outs ----

BOOST_AUTO_TEST_CASE(a_failed_lane_cancels_the_others_and_the_error_names_it) {
  agent_fixture on;
  const auto model = std::make_shared<held_model>(); // Never answers.
  const auto line = on.perform(parallel(
    "lanes",
    {asks("waits", model), fails("broken_lane"), asks("waits_too", model)}));
  BOOST_TEST(line == "| callback_failed");
  BOOST_TEST(agent_fixture::last_reason().find("broken_lane")
             != std::string::npos);
  BOOST_TEST(agent_fixture::last_reason().find("waits") == std::string::npos);
  BOOST_TEST(on.perform(says("a", "1")) == "a=1 | ok");
}

BOOST_AUTO_TEST_CASE(one_error_names_every_failed_lane) {
  agent_fixture on;
  // The agent fails with an error of its own when it is cancelled.
  const auto also
    = custom("also", [](invocation_context& context) -> agent_run {
        try {
          co_await context.sleep(1h);
        } catch (const error&) {
          throw std::runtime_error("no way out");
        }
      });
  const auto waits
    = custom("waits", [](invocation_context& context) -> agent_run {
        co_await context.sleep(1h);
      });
  BOOST_TEST(on.perform(parallel("lanes", {waits, also, fails("first")}))
             == "| callback_failed");
  for (const std::string part : {"'also'", "no way out", "'first'", "broken"})
    BOOST_TEST(agent_fixture::last_reason().find(part) != std::string::npos);
  BOOST_TEST(agent_fixture::last_reason().find("'waits'") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(nested_fan_outs_have_nested_branches_and_fail_as_one) {
  agent_fixture on;
  const auto deep = parallel(
    "outer",
    {parallel("inner", {says("a", "1"), says("b", "2")}), says("c", "3")});
  auto run = on.runtime.run(deep, on.key, "go");
  std::set<std::string> branches;
  while (auto next = run.next().value())
    branches.insert(next->branch);
  BOOST_TEST(branches
               == std::set<std::string>(
                 {"outer.inner.inner.a", "outer.inner.inner.b", "outer.c"}),
             boost::test_tools::per_element());
  BOOST_TEST(
    on.perform(
        parallel("outer2", {parallel("inner2", {fails("x")}), says("y", "3")}))
      .ends_with("| callback_failed"));
}

BOOST_AUTO_TEST_CASE(lanes_beyond_the_limit_wait_for_a_place) {
  agent_fixture on;
  std::atomic<int> here = 0;
  std::atomic<int> most = 0;
  std::vector<agent> lanes;
  for (int count = 0; count < 20; ++count)
    lanes.push_back(custom("lane" + std::to_string(count),
                           [&](invocation_context& context) -> agent_run {
                             const int now = ++here;
                             for (int seen = most;
                                  now > seen
                                  && !most.compare_exchange_weak(seen, now);) {
                             }
                             co_await context.emit(text("x"));
                             --here;
                           }));
  on.perform(
    parallel(parallel_options{.name = "lanes", .lanes_max = 3}, lanes));
  BOOST_TEST(most <= 3);
  BOOST_TEST(on.fetch(on.key).revision() == 21U);
}

// -- models ----

BOOST_AUTO_TEST_CASE(output_key_goes_with_the_answer_to_any_scope) {
  agent_fixture on;
  const auto writer = llm({.name = "writer",
                           .model = echo(),
                           .instruction = "about {topic}",
                           .output_key = "app:draft"});
  on.append(on.key, {{"topic", "owls"}});
  BOOST_TEST(on.perform(writer) == "writer=about owls | ok");
  BOOST_TEST(on.app_state() == json({{"draft", "about owls"}}));
  BOOST_TEST(on.events(on.key).back()->actions.state_delta.to_json()
             == json({{"app:draft", "about owls"}}));
}

BOOST_AUTO_TEST_CASE(
  a_missing_template_key_ends_the_run_before_any_model_call) {
  agent_fixture on;
  const auto model = std::make_shared<held_model>();
  BOOST_TEST(on.perform(asks("writer", model, "about {topic}"))
             == "| template_error");
  BOOST_TEST(agent_fixture::last_reason().find("topic") != std::string::npos);
  BOOST_TEST(model->asked.count() == 0U);
}

BOOST_AUTO_TEST_CASE(a_model_that_fails_throws_or_forgets_ends_the_run) {
  agent_fixture on;
  BOOST_TEST(on.perform(asks("a", scripted({{"a", {{.failure = "no idea"}}}})))
             == "| model_failed");
  BOOST_TEST(agent_fixture::last_reason().find("no idea") != std::string::npos);
  BOOST_TEST(
    on.perform(
      asks("b", std::make_shared<made_model>([](model_request, model_reply) {
             throw std::runtime_error("broken");
           })))
    == "| model_failed");
  BOOST_TEST(on.perform(asks("c",
                             std::make_shared<made_model>(
                               [](model_request, model_reply) { throw 7; })))
             == "| model_failed");
  BOOST_TEST(
    on.perform(asks(
      "d", std::make_shared<made_model>([](model_request, model_reply) {})))
    == "| model_failed");
  const auto held = std::make_shared<held_model>();
  auto run = on.runtime.run(asks("e", held), on.key, "go");
  held->asked.await(1);
  held->forget();
  BOOST_TEST(agent_fixture::show(std::move(run)) == "| model_failed");
}

BOOST_AUTO_TEST_CASE(
  a_model_that_answers_nothing_leaves_an_event_that_says_so) {
  agent_fixture on;
  const auto silent
    = std::make_shared<made_model>([](model_request, model_reply reply) {
        reply(model_response(content("model", {})));
      });
  BOOST_TEST(on.perform(sequential("s", {asks("a", silent), says("b", "next")}))
             == "a= b=next | ok");
  BOOST_TEST(on.events(on.key)[1]->field("errorCode")
             == "MODEL_RETURNED_NO_CONTENT");
}

BOOST_AUTO_TEST_CASE(a_model_that_answers_garbage_fails_its_agent) {
  agent_fixture on;
  const auto answers = [](content said) {
    return std::make_shared<made_model>(
      [said](model_request, model_reply reply) {
        reply(model_response(said));
      });
  };
  const auto code = [&](content said) {
    return on.perform(asks("a", answers(std::move(said))));
  };
  BOOST_TEST(code(content("model", {"\xff\xfe"})) == "| model_failed");
  BOOST_TEST(agent_fixture::last_reason().find("agent 'a'")
               != std::string::npos,
             agent_fixture::last_reason());
  BOOST_TEST(code(content("model", {function_call{"", "f", json{1, 2}}}))
             == "| model_failed");
  BOOST_TEST(code(content("model", {std::string(2 << 20, 'x')}))
             == "| model_failed");
  BOOST_TEST(on.events(on.key).size() == 3U);
}

BOOST_AUTO_TEST_CASE(a_model_that_calls_a_tool_that_is_not_there_hears_of_it) {
  agent_fixture on;
  const auto known
    = tool_of("known", [](const json&, tool_context&) -> json { return 1; });
  on.perform(asks(
    "a", scripted({{"a", {calling("unknown"), {.text = "sorry"}}}}), {known}));
  const auto told = responses(on, on.key)[0].value("error", "");
  BOOST_TEST(told.find("known") != std::string::npos, told);
}

BOOST_AUTO_TEST_CASE(a_tool_that_returns_garbage_is_an_error_result) {
  agent_fixture on;
  for (const auto& garbage :
       {json(std::numeric_limits<double>::infinity()), json("\xff")}) {
    const auto bad = tool_of(
      "bad", [garbage](const json&, tool_context&) { return garbage; });
    BOOST_TEST(
      on.perform(
        asks("a", scripted({{"a", {calling("bad"), {.text = "x"}}}}), {bad}))
      == "a= a= a=x | ok");
    const auto told = responses(on, on.key).back().value("error", "");
    BOOST_TEST(told.find("'bad'") != std::string::npos, told);
  }
}

BOOST_AUTO_TEST_CASE(a_model_that_answers_twice_is_heard_once) {
  agent_fixture on;
  const auto twice
    = std::make_shared<made_model>([](model_request, model_reply reply) {
        reply(model_response(text("first")));
        reply(model_response(text("second")));
        reply(error(errc::model_failed, "third"));
      });
  BOOST_TEST(on.perform(sequential("all", {asks("a", twice), asks("b", twice)}))
             == "a=first b=first | ok");
}

BOOST_AUTO_TEST_CASE(partial_answers_are_streamed_and_not_stored) {
  agent_fixture on;
  const auto streams
    = std::make_shared<made_model>([](model_request, model_reply reply) {
        for (const char* piece : {"a", "b"}) {
          model_response part(text("{}", piece));
          part.partial = true;
          reply(part);
        }
        reply(model_response(text("ab")));
      });
  BOOST_TEST(on.perform(asks("w", streams)) == "w=a w=b w=ab | ok");
  BOOST_TEST(on.fetch(on.key).revision() == 2U);
}

BOOST_AUTO_TEST_CASE(a_partial_event_takes_nothing_of_what_was_recorded) {
  agent_fixture on;
  const auto streams
    = custom("streams", [](invocation_context& context) -> agent_run {
        context.state().set("k", 1);
        context.state().set("temp:secret", "canary");
        event piece(text("pie"));
        piece.partial = true;
        piece.actions.state_delta
          .record("temp:secret", operation_kind::set, json("canary"))
          .value();
        co_await context.emit(piece);
        co_await context.emit_partial(piece);
        co_await context.emit(text("piece"));
      });
  auto run = on.runtime.run(streams, on.key, "go");
  std::vector<std::string> shown;
  for (auto said = run.next().get(); said.value(); said = run.next().get())
    shown.push_back(to_json(**said).dump());
  BOOST_TEST(shown.size() == 3U);
  for (const auto& each : shown)
    BOOST_TEST(each.find("canary") == std::string::npos);
  BOOST_TEST(shown[0].find("\"k\"") == std::string::npos);
  BOOST_TEST(shown[2].find("\"k\"") != std::string::npos);
  BOOST_TEST(on.state_now() == json({{"k", 1}}));
}

BOOST_AUTO_TEST_CASE(partial_answers_that_nobody_takes_are_dropped) {
  agent_fixture on;
  const auto streams
    = std::make_shared<made_model>([](model_request, model_reply reply) {
        for (int count = 0; count < 5'000; ++count) {
          model_response part(text("p{}", count));
          part.partial = true;
          reply(part);
        }
        reply(model_response(text("whole")));
      });
  auto run = on.runtime.run(asks("w", streams), on.key, "go");
  answers<void> ended;
  run.wait().then(ended.next());
  BOOST_TEST(code_of(ended.await().front()) == "ok");
  std::vector<std::string> texts;
  while (auto next = run.next().value())
    texts.push_back(next->text());
  BOOST_TEST(texts.size() < 1'000U);
  BOOST_TEST(texts.back() == "whole");
  BOOST_TEST(texts[texts.size() - 2] == "p4999");
}

// A model that says `x`, and reports this usage.
model_ptr using_tokens(json usage) {
  return std::make_shared<made_model>(
    [usage = std::move(usage)](model_request, model_reply reply) {
      model_response whole(text("x"));
      whole.extra = value(json{{"usageMetadata", usage}});
      reply(whole);
    });
}

BOOST_AUTO_TEST_CASE(no_call_begins_when_the_tokens_are_used_up) {
  agent_fixture on;
  const auto ask_often = [&on](json usage, std::uint64_t budget) {
    std::vector<agent> all;
    for (int count = 0; count < 5; ++count)
      all.push_back(asks("a" + std::to_string(count), using_tokens(usage)));
    return on.perform(sequential("all", all), {.tokens_max = budget});
  };
  const json ten = {{"totalTokenCount", 10}};
  BOOST_TEST(ask_often(ten, 25) == "a0=x a1=x a2=x | limit_exceeded");
  BOOST_TEST(ask_often(ten, 30) == "a0=x a1=x a2=x | limit_exceeded");
  BOOST_TEST(ask_often(ten, 41).ends_with("| ok"));
  BOOST_TEST(ask_often(ten, 0) == "| limit_exceeded");
  BOOST_TEST(ask_often({{"totalTokenCount", 1e300}}, 25)
             == "a0=x | limit_exceeded");
  // Counts that make no sense, and models that tell none, use up nothing.
  for (const json& usage :
       {json::object(), json({{"totalTokenCount", "10"}}), json(7)})
    BOOST_TEST(ask_often(usage, 1).ends_with("| ok"));
  BOOST_TEST(ask_often({{"totalTokenCount", -10}}, 1).ends_with("| ok"));
}

BOOST_AUTO_TEST_CASE(model_calls_are_limited_over_all_lanes) {
  agent_fixture on;
  std::vector<agent> lanes;
  for (int count = 0; count < 8; ++count)
    lanes.push_back(asks("lane" + std::to_string(count), echo()));
  BOOST_TEST(on.perform(parallel("lanes", lanes), {.model_calls_max = 8})
               .ends_with("| ok"));
  BOOST_TEST(on.perform(parallel("lanes", lanes), {.model_calls_max = 7})
               .ends_with("| limit_exceeded"));
  const auto endless = scripted({{"asker", {calling("nothing")}}});
  BOOST_TEST(on.perform(asks("asker", endless), {.model_calls_max = 20})
               .ends_with("| limit_exceeded"));
}

// -- tools ----

BOOST_AUTO_TEST_CASE(
  calls_of_one_turn_are_answered_in_one_event_in_call_order) {
  agent_fixture on;
  scripted_reply both;
  for (const auto& [name, n] :
       {std::pair("slow", 1), std::pair("fast", 2), std::pair("slow", 3)})
    both.function_calls.push_back({"", name, json{{"n", n}}});
  // One after the other, the slow tools would never meet at the latch.
  const auto meeting = std::make_shared<std::latch>(2);
  const auto slow
    = tool_of("slow", [=](const json& args, tool_context& context) {
        meeting->arrive_and_wait();
        context.state().add("n", args["n"]);
        return args["n"];
      });
  const auto fast
    = tool_of("fast", [](const json& args, tool_context& context) {
        context.state().add("n", args["n"]);
        return json{{"fast", args["n"]}};
      });
  BOOST_TEST(on.perform(asks(
               "a", scripted({{"a", {both, {.text = "done"}}}}), {slow, fast}))
             == "a= a= a=done | ok");
  BOOST_TEST(responses(on, on.key)
             == json({{{"result", 1}}, {{"fast", 2}}, {{"result", 3}}}));
  BOOST_TEST(on.state_now() == json({{"n", 6}}));
  BOOST_TEST(on.fetch(on.key).revision() == 4U);
}

BOOST_AUTO_TEST_CASE(
  a_tool_that_fails_is_an_error_result_and_its_delta_is_lost) {
  agent_fixture on;
  scripted_reply all;
  for (const std::string name : {"throws", "odd", "missing", "bad", "good"})
    all.function_calls.push_back({"", name, json::object()});
  const auto agent = asks(
    "a",
    scripted({{"a", {all, {.text = "done"}}}}),
    {tool_of("throws",
             [](const json&, tool_context& context) -> json {
               context.state().set("lost", 1);
               throw std::runtime_error("broken");
             }),
     tool_of("odd", [](const json&, tool_context&) -> json { throw 7; }),
     tool_of("bad", [](const json&, tool_context&) -> json { return "\xff"; }),
     tool_of("good", [](const json&, tool_context& context) -> json {
       context.state().set("kept", 1);
       return true;
     })});
  BOOST_TEST(on.perform(agent) == "a= a= a=done | ok");
  const auto answered = responses(on, on.key);
  BOOST_TEST(answered.size() == 5U);
  for (std::size_t index = 0; index < 4; ++index)
    BOOST_TEST(answered[index].contains("error"));
  BOOST_TEST(answered[0]["error"].get<std::string>().find("broken")
             != std::string::npos);
  BOOST_TEST(answered[2]["error"].get<std::string>().find("good")
             != std::string::npos);
  BOOST_TEST(answered[4] == json({{"result", true}}));
  BOOST_TEST(on.state_now() == json({{"kept", 1}}));
}

BOOST_AUTO_TEST_CASE(a_tool_sees_what_an_earlier_one_of_its_turn_wrote) {
  agent_fixture on;
  scripted_reply both;
  both.function_calls
    = {{"", "writes", json::object()}, {"", "reads", json::object()}};
  const auto writes = tool_of("writes", [](const json&, tool_context& context) {
    context.state().set("k", "written");
    context.state().set("temp:k", "temp");
    return json("done");
  });
  // Waits for the keys that the other tool has staged at its end.
  const auto reads = tool_of(
    "reads", [](const json&, tool_context& context) -> json {
      while (!context.state().contains("k") && !context.stop().stop_requested())
        std::this_thread::yield();
      return context.state().get("k").get<std::string>()
             + context.state().get("temp:k").get<std::string>();
    });
  on.perform(
    asks("a", scripted({{"a", {both, {.text = "done"}}}}), {writes, reads}));
  BOOST_TEST(responses(on, on.key)[1] == json({{"result", "writtentemp"}}));
}

BOOST_AUTO_TEST_CASE(a_tool_may_block_on_the_session_service) {
  // There is one thread for tools, and each tool blocks on the runtime.
  runtime_options one;
  one.tool_threads = 1;
  agent_fixture on(one);
  scripted_reply many;
  for (int count = 0; count < 6; ++count)
    many.function_calls.push_back({"", "blocks", json::object()});
  const auto other = on.open("other");
  const auto blocks
    = tool_of("blocks", [&](const json&, tool_context&) -> json {
        on.sessions()
          .append_event(other, operate({operation_on("n", "add", 1)}))
          .value();
        return on.runtime.run(says("inner", "x"), other, "go").wait().get()
                 ? "ok"
                 : "failed";
      });
  on.perform(asks("a", scripted({{"a", {many, {.text = "done"}}}}), {blocks}));
  for (const auto& each : responses(on, on.key))
    BOOST_TEST(each == json({{"result", "ok"}}));
  BOOST_TEST(on.state(other) == json({{"n", 6}}));
}

BOOST_AUTO_TEST_SUITE_END()
