// Runs by their public calls: all kinds of agents, what they read and write,
// who waits for whom, and how they fail.

#include "troupe/runtime/runtime.hpp"

#include "play.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <latch>
#include <set>

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;
namespace data = boost::unit_test::data;

namespace {

// Adds one to a key and says what it is then.
agent adds(const std::string& name, const std::string& key) {
  return custom(name, [key](invocation_context& context) -> agent_run {
    context.state().add(key, 1);
    co_await context.emit(text("{}", text_of(context.state().find(key))));
  });
}

agent asks(const std::string& name,
           model_ptr model,
           std::string instruction = "",
           std::vector<tool> tools = {}) {
  return llm({.name = name,
              .model = std::move(model),
              .instruction = std::move(instruction),
              .tools = std::move(tools)});
}

// The responses of the tools in the last event that has any.
json responses(stage& on, const session_key& key) {
  auto all = json::array();
  for (const auto& said : on.events(key))
    for (const auto& each : said.content.parts)
      if (const auto* response = each.response())
        all.push_back(response->response.data());
  return all;
}

std::size_t thread_count() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)));
}

} // namespace

BOOST_AUTO_TEST_SUITE(runs, *boost::unit_test::timeout(120))

// -- order
// ---------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(a_sequence_runs_in_order_and_the_stream_is_the_log) {
  play on;
  BOOST_TEST(on.perform(sequential(
               "all", {says("a", "1"), says("b", "2"), says("c", "3")}))
             == "a=1 b=2 c=3 | ok");
  BOOST_TEST(on.texts(on.key)
               == std::vector<std::string>({"go", "1", "2", "3"}),
             boost::test_tools::per_element());
  const auto events = on.events(on.key);
  BOOST_TEST(events.front().author == "user");
  for (const auto& said : events)
    BOOST_TEST(said.invocation_id == events.front().invocation_id);
}

BOOST_AUTO_TEST_CASE(the_stream_of_many_lanes_is_the_log) {
  play on;
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
  play on;
  BOOST_TEST(on.perform(adds("a", "n")) == "a=1 | ok");
  BOOST_TEST(on.perform(adds("a", "n")) == "a=2 | ok");
  const auto events = on.events(on.key);
  BOOST_TEST(events.size() == 4U);
  BOOST_TEST(events[0]->invocation_id != events[2]->invocation_id);
}

BOOST_AUTO_TEST_CASE(a_run_needs_its_session_and_a_sound_message) {
  play on;
  const auto agent = says("a", "1");
  BOOST_TEST(play::show(on.runtime.run(agent, {"press", "ann", "none"}, "go"))
             == "| not_found");
  BOOST_TEST(play::show(on.runtime.run(agent, {"press", "", "s"}, "go"))
             == "| invalid_argument");
  BOOST_TEST(play::show(on.runtime.run(agent, on.key, content("user", {})))
             == "| invalid_argument");
  BOOST_TEST(play::show(on.runtime.run(agent, on.key, "\xff"))
             == "| invalid_argument");
  BOOST_TEST(on.perform(agent, {.state_delta = {{"__x", 1}}})
             == "| invalid_argument");
  BOOST_TEST(
    play::show(on.runtime.run(
      agent, on.key, content("user", {function_call{"", "f", json::object()}})))
    == "| invalid_argument");
  BOOST_TEST(on.fetch(on.key).revision() == 0U);
}

BOOST_AUTO_TEST_CASE(the_message_carries_a_delta_for_all_scopes) {
  play on;
  const auto all = sequential("all",
                              {tells("own", "k"),
                               tells("users", "user:k"),
                               tells("apps", "app:k"),
                               tells("temps", "temp:k")});
  BOOST_TEST(
    on.perform(
      all,
      {.state_delta = {{"k", 1}, {"user:k", 2}, {"app:k", 3}, {"temp:k", 4}}})
    == "own=1 users=2 apps=3 temps=4 | ok");
  BOOST_TEST(on.state_now() == json({{"k", 1}, {"user:k", 2}, {"app:k", 3}}));
  BOOST_TEST(on.events(on.key).front().actions.state_delta.to_json()
             == json({{"k", 1}, {"user:k", 2}, {"app:k", 3}}));
}

// -- temp
// ----------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(temp_is_carried_through_everything_and_gone_afterwards) {
  play on;
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
    BOOST_TEST(to_text(to_json(said)).find("temp:") == std::string::npos);
  BOOST_TEST(on.state_now() == json::object());
  BOOST_TEST(on.perform(tells("next", "temp:x")) == "next=absent | ok");
}

BOOST_AUTO_TEST_CASE(streamed_events_carry_no_temp) {
  play on;
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
  play on;
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
  BOOST_TEST(play::show(std::move(first))
             == "sets=set waits=go on after=1 | ok");
}

BOOST_AUTO_TEST_CASE(lanes_add_to_temp_without_losing_anything) {
  play on;
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
                             context.state().add(
                               "temp:n", 1); // A leftover of temp: alone.
                           }));
  const auto line = on.perform(sequential(
    "all",
    {parallel("lanes", lanes), tells("total", "temp:n"), tells("own", "n")}));
  BOOST_TEST(line.substr(line.rfind("total")) == "total=310 own=300 | ok");
}

// -- what running code reads and writes
// ----------------------------------------

BOOST_AUTO_TEST_CASE(a_body_reads_what_it_recorded_before_it_is_committed) {
  play on;
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
  play on;
  // A hands-on order: the second looks after the first has recorded, and
  // again after it has committed.
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
  BOOST_TEST(code_of(run.wait()) == "ok");
}

BOOST_AUTO_TEST_CASE(leftovers_of_a_body_get_an_event_of_their_own) {
  play on;
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
  play on;
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
  play on;
  const auto breaks
    = custom("breaks", [](invocation_context& context) -> agent_run {
        context.state().set("kept", 1);
        co_await context.emit(text("said"));
        context.state().set("lost", 1);
        context.state().set("app:lost", 1);
        throw std::runtime_error("broken");
      });
  BOOST_TEST(on.perform(breaks) == "breaks=said | callback_failed");
  BOOST_TEST(play::last_reason().find("broken") != std::string::npos);
  BOOST_TEST(play::last_reason().find("breaks") != std::string::npos);
  BOOST_TEST(on.state_now() == json({{"kept", 1}}));
}

BOOST_AUTO_TEST_CASE(a_refused_emit_throws_and_leaves_nothing_behind) {
  play on;
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
  play on;
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
    BOOST_TEST(code_of(each.wait()) == "ok");
  BOOST_TEST(on.state_now() == json({{"n", 8}}));
}

BOOST_AUTO_TEST_CASE(refresh_shows_what_other_sessions_did) {
  play on;
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
  BOOST_TEST(play::show(std::move(run)) == "looks=1 | ok");
}

// -- turns on the session
// ------------------------------------------------------

BOOST_AUTO_TEST_CASE(queued_runs_take_their_turns_in_call_order) {
  play on;
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
    BOOST_TEST(code_of(each.wait()) == "ok");
  BOOST_TEST(
    on.texts(on.key)
      == std::vector<std::string>(
        {"go", "done", "0", "x", "1", "x", "2", "x", "3", "x", "4", "x"}),
    boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_run_that_would_have_to_wait_can_be_refused) {
  play on;
  const auto model = std::make_shared<held_model>();
  auto first = on.runtime.run(asks("first", model), on.key, "go");
  model->asked.await(1);
  BOOST_TEST(on.perform(says("a", "x"), {.policy = run_policy::reject})
             == "| busy");
  BOOST_TEST(on.fetch(on.key).revision() == 1U);
  model->answer("done");
  BOOST_TEST(code_of(first.wait()) == "ok");
  BOOST_TEST(on.perform(says("a", "x"), {.policy = run_policy::reject})
             == "a=x | ok");
}

BOOST_AUTO_TEST_CASE(interleaved_runs_do_not_wait) {
  play on;
  const auto model = std::make_shared<held_model>();
  auto first = on.runtime.run(asks("first", model), on.key, "go");
  model->asked.await(1);
  BOOST_TEST(on.perform(says("a", "x"), {.policy = run_policy::interleave})
             == "a=x | ok");
  // One that queues waits for all that run.
  auto last = on.runtime.run(says("b", "y"), on.key, "go");
  model->answer("done");
  BOOST_TEST(code_of(first.wait()) == "ok");
  BOOST_TEST(play::show(std::move(last)) == "b=y | ok");
}

BOOST_AUTO_TEST_CASE(appends_go_on_beside_a_run) {
  play on;
  const auto model = std::make_shared<held_model>();
  auto run = on.runtime.run(
    sequential("all", {asks("waits", model), tells("reads", "k")}),
    on.key,
    "go");
  model->asked.await(1);
  BOOST_TEST(on.append(on.key, {{"k", 1}}) == "ok");
  model->answer("done");
  BOOST_TEST(play::show(std::move(run)) == "waits=done reads=1 | ok");
}

// -- loops
// ---------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(a_loop_ends_at_its_limit) {
  play on;
  BOOST_TEST(on.perform(loop({.name = "again", .max_iterations = 3},
                             {says("a", "1"), says("b", "2")}))
             == "a=1 b=2 a=1 b=2 a=1 b=2 | ok");
}

BOOST_AUTO_TEST_CASE(escalating_ends_all_enclosing_loops_but_no_sequence) {
  play on;
  const auto inner = loop({.name = "inner"},
                          {says("a", "1"), escalates("up"), says("b", "2")});
  const auto within = sequential("within", {inner, says("c", "3")});
  const auto outer = loop({.name = "outer"}, {within, says("d", "4")});
  BOOST_TEST(on.perform(sequential("all", {outer, says("e", "5")}))
             == "a=1 up=up c=3 e=5 | ok");
}

BOOST_AUTO_TEST_CASE(a_lane_that_escalates_ends_the_loop_around_its_fan_out) {
  play on;
  const auto line = on.perform(loop(
    {.name = "again", .max_iterations = 5},
    {parallel("lanes", {escalates("up"), says("a", "1")}), says("b", "2")}));
  BOOST_TEST(line.size() == std::string("up=up a=1 | ok").size());
}

BOOST_AUTO_TEST_CASE(a_tool_escalates_for_its_agent) {
  play on;
  const auto model = scripted({{"asker", {calling("stop"), {.text = "done"}}}});
  const auto stop = tool_of("stop", [](const json&, tool_context& context) {
    context.actions().escalate = true;
    return json("ok");
  });
  const auto line
    = on.perform(loop({.name = "again", .max_iterations = 5},
                      {asks("asker", model, "", {stop}), says("b", "2")}));
  BOOST_TEST(line == "asker= asker= asker=done | ok");
}

BOOST_AUTO_TEST_CASE(an_endless_loop_that_never_waits_can_be_cancelled) {
  play on;
  const auto nothing
    = custom("nothing", [](invocation_context&) -> agent_run { co_return; });
  auto run = on.runtime.run(loop({.name = "again"}, {nothing}), on.key, "go");
  run.cancel();
  BOOST_TEST(code_of(run.wait()) == "cancelled");
}

// -- fan-outs
// ------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(a_failed_lane_cancels_the_others_and_the_error_names_it) {
  play on;
  const auto model = std::make_shared<held_model>(); // Never answers.
  const auto line = on.perform(parallel(
    "lanes",
    {asks("waits", model), fails("broken_lane"), asks("waits_too", model)}));
  BOOST_TEST(line == "| callback_failed");
  BOOST_TEST(play::last_reason().find("broken_lane") != std::string::npos);
  BOOST_TEST(play::last_reason().find("waits") == std::string::npos);
  BOOST_TEST(on.perform(says("a", "1")) == "a=1 | ok");
}

BOOST_AUTO_TEST_CASE(one_error_names_every_failed_lane) {
  play on;
  // Fails in a way of its own when it is told to end.
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
    BOOST_TEST(play::last_reason().find(part) != std::string::npos);
  BOOST_TEST(play::last_reason().find("'waits'") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(nested_fan_outs_have_nested_branches_and_fail_as_one) {
  play on;
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
  play on;
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

// -- models
// --------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(output_key_goes_with_the_answer_to_any_scope) {
  play on;
  const auto writer = llm({.name = "writer",
                           .model = echo(),
                           .instruction = "about {topic}",
                           .output_key = "app:draft"});
  on.append(on.key, {{"topic", "owls"}});
  BOOST_TEST(on.perform(writer) == "writer=about owls | ok");
  BOOST_TEST(on.app_state() == json({{"draft", "about owls"}}));
  BOOST_TEST(on.events(on.key).back().actions.state_delta.to_json()
             == json({{"app:draft", "about owls"}}));
}

BOOST_AUTO_TEST_CASE(
  a_missing_template_key_ends_the_run_before_any_model_call) {
  play on;
  const auto model = std::make_shared<held_model>();
  BOOST_TEST(on.perform(asks("writer", model, "about {topic}"))
             == "| template_error");
  BOOST_TEST(play::last_reason().find("topic") != std::string::npos);
  BOOST_TEST(model->asked.count() == 0U);
}

BOOST_AUTO_TEST_CASE(a_model_that_fails_throws_or_forgets_ends_the_run) {
  play on;
  BOOST_TEST(on.perform(asks("a", scripted({{"a", {{.failure = "no idea"}}}})))
             == "| model_failed");
  BOOST_TEST(play::last_reason().find("no idea") != std::string::npos);
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
  BOOST_TEST(play::show(std::move(run)) == "| model_failed");
}

BOOST_AUTO_TEST_CASE(a_model_that_answers_twice_is_heard_once) {
  play on;
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
  play on;
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
  play on;
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
  for (auto said = run.next(); said.value(); said = run.next())
    shown.push_back(to_json(**said).dump());
  BOOST_TEST(shown.size() == 3U);
  for (const auto& each : shown)
    BOOST_TEST(each.find("canary") == std::string::npos);
  BOOST_TEST(shown[0].find("\"k\"") == std::string::npos);
  BOOST_TEST(shown[2].find("\"k\"") != std::string::npos);
  BOOST_TEST(on.state_now() == json({{"k", 1}}));
}

BOOST_AUTO_TEST_CASE(partial_answers_that_nobody_takes_are_dropped) {
  play on;
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
  run.wait(ended.next());
  BOOST_TEST(code_of(ended.await().front()) == "ok");
  std::vector<std::string> texts;
  while (auto next = run.next().value())
    texts.push_back(next->text());
  BOOST_TEST(texts.size() < 1'000U);
  BOOST_TEST(texts.back() == "whole");
  BOOST_TEST(texts[texts.size() - 2] == "p4999");
}

BOOST_AUTO_TEST_CASE(model_calls_are_limited_over_all_lanes) {
  play on;
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

// -- tools
// ---------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(
  calls_of_one_turn_are_answered_in_one_event_in_call_order) {
  play on;
  scripted_reply both;
  for (const auto& [name, n] :
       {std::pair("slow", 1), std::pair("fast", 2), std::pair("slow", 3)})
    both.function_calls.push_back({"", name, json{{"n", n}}});
  // Ran one after the other, the slow ones would never meet.
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
  BOOST_TEST(
    on.perform(
      asks("a", scripted({{"a", {both, {.text = "done"}}}}), "", {slow, fast}))
    == "a= a= a=done | ok");
  BOOST_TEST(responses(on, on.key)
             == json({{{"result", 1}}, {{"fast", 2}}, {{"result", 3}}}));
  BOOST_TEST(on.state_now() == json({{"n", 6}}));
  BOOST_TEST(on.fetch(on.key).revision() == 4U);
}

BOOST_AUTO_TEST_CASE(
  a_tool_that_fails_is_an_error_result_and_its_delta_is_lost) {
  play on;
  scripted_reply all;
  for (const std::string name : {"throws", "odd", "missing", "bad", "good"})
    all.function_calls.push_back({"", name, json::object()});
  const auto agent = asks(
    "a",
    scripted({{"a", {all, {.text = "done"}}}}),
    "",
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
  play on;
  scripted_reply both;
  both.function_calls
    = {{"", "writes", json::object()}, {"", "reads", json::object()}};
  const auto written = std::make_shared<std::latch>(1);
  const auto writes = tool_of("writes", [](const json&, tool_context& context) {
    context.state().set("k", "written");
    context.state().set("temp:k", "temp");
    return json("done");
  });
  // Reads until it is there: what the other staged when it ended.
  const auto reads = tool_of(
    "reads", [](const json&, tool_context& context) -> json {
      while (!context.state().contains("k") && !context.stop().stop_requested())
        std::this_thread::yield();
      return context.state().get("k").get<std::string>()
             + context.state().get("temp:k").get<std::string>();
    });
  on.perform(asks(
    "a", scripted({{"a", {both, {.text = "done"}}}}), "", {writes, reads}));
  BOOST_TEST(responses(on, on.key)[1] == json({{"result", "writtentemp"}}));
}

BOOST_AUTO_TEST_CASE(a_tool_may_block_on_the_session_service) {
  // One thread for tools, and each of them blocks on the runtime.
  runtime_options one;
  one.tool_threads = 1;
  play on(one);
  scripted_reply many;
  for (int count = 0; count < 6; ++count)
    many.function_calls.push_back({"", "blocks", json::object()});
  const auto other = on.open("other");
  const auto blocks
    = tool_of("blocks", [&](const json&, tool_context&) -> json {
        on.sessions()
          .append_event(other, operate({operation_on("n", "add", 1)}))
          .value();
        return on.runtime.run(says("inner", "x"), other, "go").wait()
                 ? "ok"
                 : "failed";
      });
  on.perform(
    asks("a", scripted({{"a", {many, {.text = "done"}}}}), "", {blocks}));
  for (const auto& each : responses(on, on.key))
    BOOST_TEST(each == json({{"result", "ok"}}));
  BOOST_TEST(on.state(other) == json({{"n", 6}}));
}

// -- calls that go round
// -------------------------------------------------------

BOOST_AUTO_TEST_CASE(an_agent_that_calls_one_above_it_is_refused) {
  play on;
  // Two levels apart, by way of a description made twice.
  std::function<agent(int)> nested = [&](int depth) {
    return custom("a" + std::to_string(depth % 3),
                  [=, &nested](invocation_context& context) -> agent_run {
                    const auto next = nested(depth + 1);
                    co_await context.run(next);
                  });
  };
  BOOST_TEST(on.perform(nested(0)) == "| circular_agent_call");
  BOOST_TEST(play::last_reason().find("a0") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(agents_below_each_other_are_limited) {
  play on;
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
  play on;
  const auto inner = says("inner", "x");
  const auto other = on.open("other");
  const auto nests
    = custom("nests", [&](invocation_context& context) -> agent_run {
        auto same = on.runtime.run(inner, on.key, "go");
        const auto refused = co_await same.wait_async();
        auto beside = on.runtime.run(
          inner, on.key, "go", {.policy = run_policy::interleave});
        const auto interleaved = co_await beside.wait_async();
        auto away = on.runtime.run(inner, other, "go");
        const auto elsewhere = co_await away.wait_async();
        co_await context.emit(text("{} {} {}",
                                   code_of(refused),
                                   code_of(interleaved),
                                   code_of(elsewhere)));
      });
  BOOST_TEST(on.perform(nests) == "nests=would_deadlock ok ok | ok");
}

BOOST_AUTO_TEST_CASE(a_tool_that_runs_on_its_own_session_would_deadlock) {
  play on;
  const auto other = on.open("other");
  const auto inner = says("inner", "x");
  // Round the corner: a run on another session, whose tool comes back here.
  const auto back = tool_of("back", [&](const json&, tool_context&) -> json {
    return code_of(on.runtime.run(inner, on.key, "go").wait());
  });
  const auto corner
    = asks("corner",
           scripted({{"corner", {calling("back"), {.text = "done"}}}}),
           "",
           {back});
  const auto out = tool_of("out", [&](const json&, tool_context&) -> json {
    const auto here = code_of(on.runtime.run(inner, on.key, "go").wait());
    return here + " " + code_of(on.runtime.run(corner, other, "go").wait());
  });
  on.perform(asks(
    "a", scripted({{"a", {calling("out"), {.text = "done"}}}}), "", {out}));
  BOOST_TEST(responses(on, on.key)
             == json({{{"result", "would_deadlock ok"}}}));
  BOOST_TEST(responses(on, other) == json({{{"result", "would_deadlock"}}}));
}

// -- the handle
// ----------------------------------------------------------------

BOOST_AUTO_TEST_CASE(iterating_throws_the_error_of_the_run_at_the_end) {
  play on;
  std::string line;
  const auto code = code_thrown_by([&] {
    for (const auto& said : on.runtime.run(
           sequential("all", {says("a", "1"), fails("b")}), on.key, "go"))
      line += said.text();
  });
  BOOST_TEST(line == "1");
  BOOST_TEST(code == "callback_failed");
}

BOOST_AUTO_TEST_CASE(the_error_comes_once_and_then_the_end) {
  play on;
  auto run = on.runtime.run(fails("a"), on.key, "go");
  BOOST_TEST(code_of(run.next()) == "callback_failed");
  BOOST_TEST((run.next().value() == nullptr));
  BOOST_TEST(code_of(run.wait()) == "callback_failed");
}

BOOST_AUTO_TEST_CASE(events_can_be_taken_with_completions) {
  play on;
  auto run = on.runtime.run(
    sequential("all", {says("a", "1"), says("b", "2")}), on.key, "go");
  std::string line;
  for (;;) {
    answers<event_ptr> next;
    run.next(next.next());
    const auto said = next.await().front().value();
    if (!said)
      break;
    line += said->text();
  }
  BOOST_TEST(line == "12");
}

BOOST_AUTO_TEST_CASE(a_slow_consumer_gets_everything_after_the_end) {
  play on;
  auto run = on.runtime.run(
    loop({.name = "again", .max_iterations = 500}, {says("a", "1")}),
    on.key,
    "go");
  answers<void> ended;
  run.wait(ended.next());
  BOOST_TEST(code_of(ended.await().front()) == "ok");
  int count = 0;
  while (run.next().value())
    ++count;
  BOOST_TEST(count == 500);
}

BOOST_AUTO_TEST_CASE(dropping_the_handle_cancels_and_detaching_does_not) {
  play on;
  const auto model = std::make_shared<held_model>();
  { const auto dropped = on.runtime.run(asks("a", model), on.key, "go"); }
  // The next one gets its turn, so the first has ended.
  BOOST_TEST(on.perform(says("b", "1")) == "b=1 | ok");
  const auto other = std::make_shared<held_model>();
  on.runtime.run(asks("c", other), on.key, "go").detach();
  other->asked.await(1);
  auto behind = on.runtime.run(says("d", "2"), on.key, "go");
  other->answer("done");
  BOOST_TEST(play::show(std::move(behind)) == "d=2 | ok");
  BOOST_TEST(std::ranges::count(on.texts(on.key), "done") == 1);
}

BOOST_AUTO_TEST_CASE(an_observer_is_told_of_every_agent) {
  play on;
  std::mutex mutex;
  std::vector<std::string> told;
  on.perform(sequential("all", {says("a", "1"), says("b", "2")}),
             {.on_agent = [&](std::string_view name, bool started) {
               const std::lock_guard guard(mutex);
               told.push_back((started ? "+" : "-") + std::string(name));
             }});
  BOOST_TEST(
    told == std::vector<std::string>({"+all", "+a", "-a", "+b", "-b", "-all"}),
    boost::test_tools::per_element());
}

// -- retries
// -------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(an_event_that_is_emitted_again_takes_effect_once) {
  play on;
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

BOOST_AUTO_TEST_CASE(what_an_agent_starts_on_its_own_may_outlive_it) {
  play on;
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
          const auto stored = co_await sessions.append_event_async(key, said);
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

// -- many at once
// --------------------------------------------------------------

BOOST_AUTO_TEST_CASE(a_thousand_runs_waiting_for_slow_models_hold_no_threads) {
  const auto time = std::make_shared<watched_environment>(1);
  play on(stage::in(time));
  const auto before = thread_count();
  const auto agent = asks(
    "slow", scripted({{"slow", {{.text = "at last", .latency = 60'000ms}}}}));
  std::vector<run> all;
  for (int count = 0; count < 1'000; ++count)
    all.push_back(
      on.runtime.run(agent, on.open("s" + std::to_string(count)), "go"));
  time->timers.await(1'000);
  BOOST_TEST(thread_count() == before);
  time->advance(60s);
  for (auto& each : all)
    BOOST_TEST(play::show(std::move(each)) == "slow=at last | ok");
}

BOOST_AUTO_TEST_CASE(all_lanes_of_a_large_fan_out_wait_at_the_same_time) {
  play on;
  const auto model = std::make_shared<held_model>();
  std::vector<agent> lanes;
  for (int count = 0; count < 300; ++count)
    lanes.push_back(asks("a" + std::to_string(count), model));
  auto run = on.runtime.run(parallel("lanes", lanes), on.key, "go");
  model->asked.await(300);
  model->answer("done");
  BOOST_TEST(code_of(run.wait()) == "ok");
  BOOST_TEST(on.events(on.key).size() == 301U);
}

BOOST_AUTO_TEST_CASE(a_large_fan_out_ends_when_its_first_lane_fails) {
  play on;
  for (const bool first : {true, false}) {
    std::vector<agent> lanes;
    for (int count = 0; count < 300; ++count)
      lanes.push_back(adds("a" + std::to_string(count), "n"));
    lanes.insert(first ? lanes.begin() : lanes.end(), fails("broken"));
    BOOST_TEST(
      code_of(on.runtime.run(parallel("lanes", lanes), on.key, "go").wait())
      == "callback_failed");
  }
  BOOST_TEST(on.perform(says("b", "1")) == "b=1 | ok");
}

BOOST_AUTO_TEST_CASE(no_more_runs_than_allowed_are_under_way) {
  runtime_options few;
  few.runs_max = 2;
  play on(few);
  const auto model = std::make_shared<held_model>();
  const auto slow = asks("slow", model);
  auto first = on.runtime.run(slow, on.open("a"), "go");
  auto second = on.runtime.run(slow, on.open("b"), "go");
  model->asked.await(2);
  BOOST_TEST(on.perform(says("c", "3")) == "| busy");
  model->answer("done");
  BOOST_TEST(play::show(std::move(first)) == "slow=done | ok");
  BOOST_TEST(play::show(std::move(second)) == "slow=done | ok");
  BOOST_TEST(on.perform(says("c", "3")) == "c=3 | ok");
}

BOOST_AUTO_TEST_CASE(what_a_running_agent_emits_is_never_refused_as_too_much) {
  runtime_options few;
  few.session_appends_max = 1;
  few.runtime_appends_max = 1;
  few.session_bytes_max = 10;
  play on(few);
  std::vector<agent> lanes;
  for (int count = 0; count < 50; ++count)
    lanes.push_back(says("a" + std::to_string(count), "words"));
  BOOST_TEST(
    code_of(on.runtime.run(parallel("lanes", lanes), on.key, "go").wait())
    == "ok");
  BOOST_TEST(on.events(on.key).size() == 51U);
}

BOOST_AUTO_TEST_CASE(many_short_runs_on_many_sessions_end) {
  play on;
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
                .has_value();
  });
  BOOST_TEST(good == 300);
  BOOST_TEST(on.app_state() == json({{"n", 300}}));
  BOOST_TEST(on.user_state() == json({{"n", 300}}));
}

BOOST_AUTO_TEST_SUITE_END()
