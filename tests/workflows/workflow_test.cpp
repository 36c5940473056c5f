// Workflows that run: events, state, failures, time limits and pauses.

#include "troupe/agents/workflow.hpp"

#include "troupe/agents/agent_tool.hpp"

#include "../runtime/staged_store.hpp"
#include "workflow_nodes.hpp"
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(workflow_runs)

namespace {

constexpr node_retry at_once{.attempts_max = 3, .first_delay = 0ms};

/// A node that fails until its attempt `good`.
workflow_node fails_before(std::string name, std::uint64_t good) {
  auto made = function(std::move(name), [good](node_context& context) -> json {
    context.state().set("tried", context.attempt());
    context.state().set("attempt " + std::to_string(context.attempt()), true);
    if (context.attempt() < good)
      throw error(errc::tool_failed, "not yet");
    return context.attempt();
  });
  made.retry = at_once;
  return made;
}

workflow_node sleeps(std::string name, const std::shared_ptr<tally>& ended) {
  return function(
    std::move(name),
    [ended](node_context& context) -> task<std::optional<node_output>> {
      try {
        co_await context.sleep(24h);
      } catch (const error&) {
        ended->add();
        throw;
      }
      co_return std::nullopt;
    });
}

} // namespace

BOOST_AUTO_TEST_CASE(a_chain_passes_outputs_on) {
  agent_fixture on;
  const auto root = workflow({.name = "w",
                              .nodes = {passes("a"), passes("b")},
                              .edges = {{"START", "a"}, {"a", "b"}},
                              .output_key = "made"});
  on.perform(root);
  BOOST_TEST(ends(on, on.key)
             == R"x(w@1/a@1="a(\"go\")" )x"
                R"x(w@1/b@1="b(\"a(\\\"go\\\")\")" )x"
                R"x(w@1="b(\"a(\\\"go\\\")\")". )x");
  BOOST_TEST(on.state_now().at("made") == R"x(b("a(\"go\")"))x");
}

BOOST_AUTO_TEST_CASE(an_end_is_one_event_with_output_route_and_state) {
  agent_fixture on;
  const auto root = workflow(
    {.name = "w",
     .nodes
     = {function("a",
                 [](node_context& context) {
                   context.state().set("seen", 1);
                   context.state().set("temp:seen", 2);
                   return node_output("x", {"on", 1, true});
                 }),
        function("b",
                 [](node_context& context) -> std::optional<node_output> {
                   BOOST_TEST(context.state().find("temp:seen").has_value());
                   return {};
                 })},
     .edges = {{"START", "a"}, {"a", "b", {"on"}}}});
  BOOST_TEST(on.perform(root) == "w= w= w= w= | ok");
  const auto all = on.events(on.key);
  const auto& made = *all[2];
  BOOST_TEST(made.id == made.invocation_id + "/w@1/a@1");
  BOOST_TEST(made.actions.extra.data().at("route")
             == parse_json(R"(["on", 1, true])").value());
  BOOST_TEST(output_of(made) == "x");
  BOOST_TEST(on.state_now().at("seen") == 1);
  // A node without an output has an event, too.
  BOOST_TEST(all[3]->id == made.invocation_id + "/w@1/b@1");
  BOOST_TEST(output_of(*all[3]).is_null());
}

BOOST_AUTO_TEST_CASE(forks_run_at_the_same_time_and_join) {
  agent_fixture on;
  const auto both = std::make_shared<tally>();
  const auto meets = [both](std::string name) {
    return function(
      name,
      [both, name](node_context& context) -> task<std::optional<node_output>> {
        both->add();
        while (both->count() < 2)
          co_await context.sleep(1ms);
        co_return node_output(name);
      });
  };
  const auto root = workflow(
    {.name = "w",
     .nodes
     = {meets("a"), meets("b"), {.name = "j", .work = join()}, passes("c")},
     .edges
     = {{"START", "a"}, {"START", "b"}, {"a", "j"}, {"b", "j"}, {"j", "c"}}});
  BOOST_TEST(on.perform(root).find("| ok") != std::string::npos);
  const auto line = ends(on, on.key);
  BOOST_TEST(line.find(R"x(w@1/j@1={"a":"a","b":"b"} )x") != std::string::npos);
  BOOST_TEST(line.find(R"(w@1/c@1=)") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(lanes_max_limits_the_nodes_that_run) {
  agent_fixture on;
  const auto running = std::make_shared<std::atomic<int>>(0);
  const auto most = std::make_shared<std::atomic<int>>(0);
  workflow_options options{.name = "w", .lanes_max = 4};
  for (int index = 0; index < 200; ++index) {
    const auto name = "n" + std::to_string(index);
    options.nodes.push_back(function(
      name, [=](node_context& context) -> task<std::optional<node_output>> {
        *most = std::max(most->load(), ++*running);
        co_await context.sleep(1us);
        --*running;
        co_return std::nullopt;
      }));
    options.edges.push_back({"START", name});
  }
  BOOST_TEST(on.perform(workflow(options)).find("| ok") != std::string::npos);
  BOOST_TEST(most->load() <= 4);
  BOOST_TEST(most->load() > 1);
}

BOOST_AUTO_TEST_CASE(an_agent_gets_its_input_and_gives_its_last_text) {
  agent_fixture on;
  const auto model = std::make_shared<held_model>();
  auto root = workflow(
    {.name = "w",
     .nodes = {function("plan", [](node_context&) { return json("do this"); }),
               {.work = asks("writer", model)},
               {.work = asks("other", echo(), "hi")},
               passes("end")},
     .edges = {{"START", "plan"},
               {"plan", "writer"},
               {"writer", "other"},
               {"other", "end"}}});
  auto started = on.runtime.run(root, on.key, {"go"});
  model->asked.await(1);
  const auto request = model->requests().front();
  BOOST_TEST(request.contents.size() == 2U);
  BOOST_TEST(request.contents.back()->role == "user");
  BOOST_TEST(request.contents.back()->text() == "do this");
  model->answer("done");
  BOOST_TEST(on.show(std::move(started)).find("| ok") != std::string::npos);
  BOOST_TEST(ends(on, on.key).find(R"x(w@1/writer@1="done")x")
             != std::string::npos);
  // Input belongs to one visit, so the other agent does not see it.
  BOOST_TEST(ends(on, on.key).find(R"x(w@1="end(\"hi\")")x")
             != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_tool_gets_its_input_as_arguments) {
  agent_fixture on;
  const auto adds_up = [](const json& args, tool_context& context) {
    context.state().set("sum", args.at("a").get<int>() + 1);
    return json{{"sum", args.at("a").get<int>() + 1}};
  };
  const auto root = [&](json input) {
    return workflow(
      {.name = "w",
       .nodes = {function("a", [input](node_context&) { return input; }),
                 {.work = tool_of("up", adds_up)}},
       .edges = {{"START", "a"}, {"a", "up"}}});
  };
  on.perform(root({{"a", 2}}));
  BOOST_TEST(ends(on, on.key).find(R"(w@1/up@1={"sum":3})")
             != std::string::npos);
  BOOST_TEST(on.state_now().at("sum") == 3);
  BOOST_TEST(on.perform(root(json(R"({"a": 4})"))).find("| ok")
             != std::string::npos);
  BOOST_TEST(on.state_now().at("sum") == 5);
  BOOST_TEST(on.perform(root(json("text"))).find("| invalid_argument")
             != std::string::npos);
  BOOST_TEST(on.last_reason().find("'up'") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(workflows_are_nodes_and_agents_like_others) {
  agent_fixture on;
  const auto inner = workflow({.name = "inner",
                               .nodes = {passes("a"), passes("b")},
                               .edges = {{"START", "a"}, {"a", "b"}}});
  const auto root = loop(
    {.name = "l", .max_iterations = 2},
    {workflow({.name = "outer",
               .nodes = {passes("a"), {.work = inner}, passes("c")},
               .edges = {{"START", "a"}, {"a", "inner"}, {"inner", "c"}}}),
     says("s", "x")});
  BOOST_TEST(on.perform(root).find("| ok") != std::string::npos);
  const auto line = ends(on, on.key);
  BOOST_TEST(line.find("outer@1/inner@1/inner@1/a@1=") != std::string::npos);
  BOOST_TEST(line.find("outer@2/inner@1/inner@1/b@1=") != std::string::npos);
  BOOST_TEST(
    line.find(R"x(outer@1/inner@1/inner@1/a@1="a(\"a(\\\"go\\\")\")")x")
    != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_workflow_runs_on_several_lanes_at_once) {
  agent_fixture on;
  const auto inner = workflow(
    {.name = "inner", .nodes = {passes("a")}, .edges = {{"START", "a"}}});
  const auto root = map({.name = "m", .items_key = "items"}, inner);
  BOOST_TEST(on.perform(root, {}, {{"items", {1, 2, 3}}}).find("| ok")
             != std::string::npos);
  std::set<std::string> ids;
  for (const auto& each : on.events(on.key))
    ids.insert(each->id);
  BOOST_TEST(ids.size() == on.events(on.key).size());
  BOOST_TEST(ends(on, on.key).find("m@1/inner@3/a@1=") != std::string::npos);
}

// The contents that each agent's model gets: `name: role=text role=text; `.
model_ptr
tells_contents(const std::shared_ptr<std::vector<std::string>>& seen) {
  return std::make_shared<made_model>(
    [seen](const model_request& request, const model_reply& reply) {
      auto line = request.agent + ":";
      for (const auto& each : request.contents)
        line += " " + each->role + "=" + each->text();
      seen->push_back(line);
      reply(model_response(text("{} done", request.agent)));
    });
}

BOOST_AUTO_TEST_CASE(agents_behind_a_fork_see_the_message_and_not_each_other) {
  agent_fixture on;
  const auto seen = std::make_shared<std::vector<std::string>>();
  const auto root
    = workflow({.name = "w",
                .nodes = {{.work = asks("one", tells_contents(seen))},
                          {.work = asks("two", tells_contents(seen))}},
                .edges = {{"START", "one"}, {"START", "two"}},
                .lanes_max = 1});
  BOOST_TEST(on.perform(root).find("| ok") != std::string::npos);
  BOOST_TEST(*seen
             == std::vector<std::string>({"one: user=go", "two: user=go"}));
}

BOOST_AUTO_TEST_CASE(the_first_agent_of_an_inner_workflow_gets_its_input) {
  agent_fixture on;
  const auto seen = std::make_shared<std::vector<std::string>>();
  const auto inner
    = workflow({.name = "inner",
                .nodes = {{.work = asks("deep", tells_contents(seen))}},
                .edges = {{"START", "deep"}}});
  const auto root = workflow(
    {.name = "w",
     .nodes = {function("plan", [](node_context&) { return json("think"); }),
               {.work = inner}},
     .edges = {{"START", "plan"}, {"plan", "inner"}}});
  for (int count = 0; count < 2; ++count)
    BOOST_TEST(on.perform(root).find("| ok") != std::string::npos);
  // The input of the first run is not shown again.
  BOOST_TEST(*seen
             == std::vector<std::string>(
               {"deep: user=go user=think",
                "deep: user=go model=deep done user=go user=think"}));
}

BOOST_AUTO_TEST_CASE(an_agent_that_says_nothing_has_no_output) {
  agent_fixture on;
  const auto silent
    = custom("silent", [](invocation_context&) -> agent_run { co_return; });
  const auto root = workflow(
    {.name = "w",
     .nodes = {function("plan", [](node_context&) { return json("x"); }),
               {.work = silent}},
     .edges = {{"START", "plan"}, {"plan", "silent"}}});
  on.perform(root);
  BOOST_TEST(ends(on, on.key).find("w@1/silent@1=null w@1=null.")
             != std::string::npos);
}

BOOST_AUTO_TEST_CASE(the_output_of_a_workflow_is_that_of_its_lane_or_call) {
  agent_fixture on;
  const auto doubles = [](const std::string& name) {
    return workflow(
      {.name = name,
       .nodes = {function("a",
                          [](node_context& context) {
                            const auto item = context.state().find("temp:item");
                            return item ? json(2 * item->data().get<int>())
                                        : json(context.key().substr(
                                          context.key().find('/')));
                          })},
       .edges = {{"START", "a"}}});
  };
  BOOST_TEST(
    on.perform(map({.name = "m", .items_key = "items", .output_key = "all"},
                   doubles("d")),
               {},
               {{"items", {1, 2, 3}}})
      .find("| ok")
    != std::string::npos);
  BOOST_TEST(on.state_now().at("all") == json({2, 4, 6}));
  // Two calls of one turn have different keys.
  scripted_reply both;
  both.function_calls = {{"c1", "flow", json::object({{"request", "x"}})},
                         {"c2", "flow", json::object({{"request", "x"}})}};
  const auto caller = asks("caller",
                           scripted({{"caller", {both, {.text = "done"}}}}),
                           {agent_tool(doubles("flow"))});
  BOOST_TEST(on.perform(caller).find("| ok") != std::string::npos);
  const auto told = responses(on, on.key);
  BOOST_TEST_REQUIRE(told.size() == 2U);
  BOOST_TEST(to_text(told[0]).find("/flow@1/a@1") != std::string::npos);
  BOOST_TEST(told[0] != told[1]);
}

// -- failures ----

BOOST_AUTO_TEST_CASE(attempts_count_for_lanes_max) {
  agent_fixture on;
  const auto running = std::make_shared<std::atomic<int>>(0);
  const auto most = std::make_shared<std::atomic<int>>(0);
  workflow_options options{.name = "w", .lanes_max = 1};
  for (int index = 0; index < 6; ++index) {
    const auto name = "n" + std::to_string(index);
    options.nodes.push_back(function(
      name, [=](node_context& context) -> task<std::optional<node_output>> {
        *most = std::max(most->load(), ++*running);
        co_await context.sleep(2ms);
        --*running;
        if (context.attempt() == 1)
          throw error(errc::tool_failed, "no");
        co_return std::nullopt;
      }));
    options.nodes.back().retry
      = {.attempts_max = 2, .first_delay = 1ms, .jitter = 0};
    options.edges.push_back({"START", name});
  }
  BOOST_TEST(on.perform(workflow(options)).find("| ok") != std::string::npos);
  BOOST_TEST(most->load() == 1);
}

BOOST_AUTO_TEST_CASE(a_failure_that_no_event_can_hold_is_still_named) {
  agent_fixture on;
  const auto root = workflow(
    {.name = "w",
     .nodes = {function("a",
                        [](node_context&) -> json {
                          throw error(errc::tool_failed, "real \xff reason");
                        })},
     .edges = {{"START", "a"}}});
  BOOST_TEST(on.perform(root).find("| tool_failed") != std::string::npos);
  BOOST_TEST(on.last_reason().find("node 'a'") != std::string::npos);
  BOOST_TEST(on.last_reason().find("real") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_node_that_was_cancelled_alone_has_failed) {
  agent_fixture on;
  const auto root
    = workflow({.name = "w",
                .nodes = {function("a",
                                   [](node_context&) -> json {
                                     throw error(errc::cancelled, "elsewhere");
                                   })},
                .edges = {{"START", "a"}}});
  BOOST_TEST(on.perform(root).find("| callback_failed") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_failed_attempt_leaves_its_error_and_none_of_its_state) {
  agent_fixture on;
  const auto root = workflow(
    {.name = "w", .nodes = {fails_before("a", 3)}, .edges = {{"START", "a"}}});
  BOOST_TEST(on.perform(root).find("| ok") != std::string::npos);
  BOOST_TEST(failed(on, on.key) == "a@1#1 tool_failed a@1#2 tool_failed ");
  const auto now = on.state_now();
  BOOST_TEST(now.at("tried") == 3);
  BOOST_TEST(!now.contains("attempt 1"));
  BOOST_TEST(!now.contains("attempt 2"));
  BOOST_TEST(now.contains("attempt 3"));
}

BOOST_AUTO_TEST_CASE(a_join_fires_once_behind_failed_attempts) {
  agent_fixture on;
  const auto root = workflow(
    {.name = "w",
     .nodes = {passes("b"),
               fails_before("c", 3),
               {.name = "j", .work = join()},
               function("d", [](node_context&) { return json("end"); })},
     .edges
     = {{"START", "b"}, {"START", "c"}, {"b", "j"}, {"c", "j"}, {"j", "d"}}});
  BOOST_TEST(on.perform(root).ends_with("| ok"));
  const auto line = ends(on, on.key);
  BOOST_TEST(line.find(R"x(w@1/j@1={"b":"b(\"go\")","c":3} w@1/d@1="end" )x")
               != std::string::npos,
             line);
  BOOST_TEST(line.find("j@2") == std::string::npos, line);
  BOOST_TEST(!on.state_now().contains("attempt 1"));
  BOOST_TEST(!on.state_now().contains("attempt 2"));
}

BOOST_AUTO_TEST_CASE(visits_before_the_limit_are_committed) {
  agent_fixture on;
  auto counts = function("a", [](node_context& context) -> json {
    context.state().add("n", 1);
    return nullptr;
  });
  counts.visits_max = 3;
  const auto root
    = workflow({.name = "w",
                .nodes = {counts, passes("b"), passes("c")},
                .edges = {{"START", "a"},
                          {"a", "b"},
                          {"b", "c", {"out"}},
                          {.from = "b", .to = "a", .otherwise = true}}});
  BOOST_TEST(on.perform(root).ends_with("| limit_exceeded"));
  BOOST_TEST(on.last_reason().find("the cycle are a, b") != std::string::npos,
             on.last_reason());
  BOOST_TEST(on.state_now().at("n") == 3);
  BOOST_TEST(ends(on, on.key).find("w@1/b@3=") != std::string::npos);
}

// The second way to `d` ends first.
BOOST_AUTO_TEST_CASE(visits_of_one_node_come_one_after_another) {
  agent_fixture on;
  const auto begun = std::make_shared<tally>();
  const auto inside = std::make_shared<std::atomic<int>>(0);
  const auto most = std::make_shared<std::atomic<int>>(0);
  const auto slow = tool_of("b", [begun](const json&, tool_context&) -> json {
    begun->await(1);
    return "b";
  });
  const auto d
    = function("d",
               [begun, inside, most](
                 node_context& context) -> task<std::optional<node_output>> {
                 *most = std::max(most->load(), ++*inside);
                 begun->add();
                 co_await context.emit(text("inside"));
                 --*inside;
                 co_return node_output(context.input());
               });
  const auto root = workflow(
    {.name = "w",
     .nodes = {function("a", [](node_context&) { return json::object(); }),
               {.name = "b", .work = slow},
               function("c", [](node_context&) { return json("c"); }),
               d},
     .edges
     = {{"START", "a"}, {"a", "b"}, {"a", "c"}, {"b", "d"}, {"c", "d"}}});
  BOOST_TEST(on.perform(root).ends_with("| ok"));
  BOOST_TEST(most->load() == 1);
  const auto line = ends(on, on.key);
  BOOST_TEST(line.find(R"(w@1/d@1="c" )") != std::string::npos, line);
  BOOST_TEST(line.find(R"(w@1/d@2="b" )") != std::string::npos, line);
}

BOOST_AUTO_TEST_CASE(a_thousand_nodes_that_wait_hold_no_threads) {
  const auto time = std::make_shared<watched_environment>(1);
  agent_fixture on(runtime_fixture::in(time));
  const auto before = thread_count();
  workflow_options options{.name = "w"};
  for (int number = 0; number < 1'000; ++number) {
    const auto name = "n" + std::to_string(number);
    options.nodes.push_back(function(
      name, [](node_context& context) -> task<std::optional<node_output>> {
        co_await context.sleep_for(1h);
        co_return node_output(1);
      }));
    options.edges.push_back({"START", name});
    options.edges.push_back({name, "j"});
  }
  options.nodes.push_back({.name = "j", .work = join()});
  auto started
    = on.runtime.run(workflow(std::move(options)), on.key, user_message("go"));
  time->timers.await(1'000);
  BOOST_TEST(thread_count() <= before);
  time->advance(1h);
  BOOST_TEST(code_of(started.wait().get()) == "ok");
}

BOOST_AUTO_TEST_CASE(a_node_that_fails_for_good_ends_the_workflow) {
  agent_fixture on;
  const auto ended = std::make_shared<tally>();
  const auto root
    = workflow({.name = "w",
                .nodes = {sleeps("b", ended), fails_before("c", 4)},
                .edges = {{"START", "b"}, {"START", "c"}}});
  BOOST_TEST(on.perform(root).find("| tool_failed") != std::string::npos);
  BOOST_TEST(on.last_reason()
             == "node 'c' of workflow 'w' failed in attempt 3: not yet");
  BOOST_TEST(ended->count() == 1U);
  BOOST_TEST(ends(on, on.key) == "");
}

// Functions run one after another beside the failed one.
BOOST_AUTO_TEST_CASE(a_node_is_tried_again_beside_a_long_chain) {
  const auto time = std::make_shared<watched_environment>(1);
  agent_fixture on(runtime_fixture::in(time));
  auto retried = function("a", [](node_context& context) -> json {
    if (context.attempt() == 1)
      throw error(errc::tool_failed, "not yet");
    return nullptr;
  });
  retried.retry = {.attempts_max = 2, .first_delay = 1h, .jitter = 0};
  workflow_options options{.name = "w", .nodes = {retried}};
  options.edges.push_back({"START", "a"});
  std::string last = workflow_start;
  for (int number = 0; number < 60; ++number) {
    const auto name = "c" + std::to_string(number);
    options.nodes.push_back(function(name, [time, number](node_context&) {
      if (number == 0)
        time->timers.await(1);
      if (number == 1)
        time->advance(1h);
      return json(number);
    }));
    options.edges.push_back({last, name});
    last = name;
  }
  BOOST_TEST(on.perform(workflow(std::move(options))).ends_with("| ok"));
  const auto line = ends(on, on.key);
  BOOST_TEST_REQUIRE(line.find("w@1/a@1=") != std::string::npos, line);
  BOOST_TEST(line.find("w@1/a@1=") < line.find("w@1/c59@1="), line);
}

// The clock stands still, so the run ends only if the failure stops the other
// node. No machine is too slow for this.
BOOST_AUTO_TEST_CASE(a_failure_stops_a_node_that_waits) {
  runtime_options chosen;
  chosen.environment = std::make_shared<simulated_environment>(1);
  agent_fixture on(std::move(chosen));
  const auto begun = std::make_shared<tally>();
  const auto refused = std::make_shared<tally>();
  const auto slow = function(
    "b", [=](node_context& context) -> task<std::optional<node_output>> {
      begun->add();
      bool is_stopped = false;
      try {
        co_await context.sleep(10s);
      } catch (const error&) {
        is_stopped = true;
      }
      context.state().set("late", is_stopped);
      try {
        co_await context.emit(text("{}", "late"));
      } catch (const error&) {
        refused->add();
      }
      co_return node_output("late");
    });
  tool_options options;
  options.name = "c";
  options.parameters = json::object(
    {{"type", "object"},
     {"properties",
      json::object({{"word", json::object({{"type", "string"}})}})}});
  options.run = [begun](const json&, tool_context&) -> json {
    begun->await(1);
    throw error(errc::tool_failed, "broken");
  };
  const auto root = workflow(
    {.name = "w",
     .nodes = {slow, {.name = "c", .work = tool(std::move(options))}},
     .edges = {{"START", "b"}, {"START", "c"}}});
  BOOST_TEST(on.perform(root).find("| tool_failed") != std::string::npos);
  BOOST_TEST(on.last_reason().find("node 'c' of workflow 'w' failed: ") == 0U,
             on.last_reason());
  BOOST_TEST(refused->count() == 1U);
  BOOST_TEST(!on.state_now().contains("late"));
  BOOST_TEST(ends(on, on.key) == "");
}

BOOST_AUTO_TEST_CASE(only_the_named_errors_are_tried_again) {
  agent_fixture on;
  auto node = fails_before("a", 2);
  node.retry.codes = {errc::model_failed};
  const auto root
    = workflow({.name = "w", .nodes = {node}, .edges = {{"START", "a"}}});
  BOOST_TEST(on.perform(root).find("| tool_failed") != std::string::npos);
  BOOST_TEST(failed(on, on.key) == "a@1#1 tool_failed ");
}

BOOST_AUTO_TEST_CASE(an_exception_of_a_function_names_the_node) {
  agent_fixture on;
  const auto root = workflow(
    {.name = "w",
     .nodes = {function(
       "a", [](node_context&) -> json { throw std::runtime_error("broken"); })},
     .edges = {{"START", "a"}}});
  BOOST_TEST(on.perform(root).find("| callback_failed") != std::string::npos);
  BOOST_TEST(on.last_reason().find("node 'a' of workflow 'w'")
             != std::string::npos);
  BOOST_TEST(on.last_reason().find("broken") != std::string::npos);
}

// The end of the first attempt is stored, and the attempt does not know it.
BOOST_AUTO_TEST_CASE(a_stored_end_counts_and_a_later_one_does_not) {
  const staged_place place;
  agent_fixture on(place.options());
  const auto calls = std::make_shared<std::atomic<int>>(0);
  auto node = function("n", [calls, script = place.script](node_context&) {
    if (++*calls == 1)
      script->next_commits({store_script::step::fail_anyway});
    return json(calls->load());
  });
  node.retry = at_once;
  const auto root
    = workflow({.name = "w", .nodes = {node}, .edges = {{"START", "n"}}});
  BOOST_TEST(on.perform(root).ends_with("| ok"), on.last_reason());
  BOOST_TEST(calls->load() == 2);
  BOOST_TEST(ends(on, on.key) == "w@1/n@1=1 w@1=1. ");
  BOOST_TEST(failed(on, on.key) == "n@1#1 store_failed ");
}

BOOST_AUTO_TEST_CASE(a_time_limit_is_that_of_one_attempt) {
  agent_fixture on;
  const auto ended = std::make_shared<tally>();
  auto node = sleeps("a", ended);
  node.timeout = 5ms;
  node.retry = {.attempts_max = 2, .first_delay = 0ms};
  const auto root
    = workflow({.name = "w", .nodes = {node}, .edges = {{"START", "a"}}});
  BOOST_TEST(on.perform(root).find("| deadline_exceeded") != std::string::npos);
  BOOST_TEST(ended->count() == 2U);
  BOOST_TEST(failed(on, on.key)
             == "a@1#1 deadline_exceeded a@1#2 deadline_exceeded ");
}

BOOST_AUTO_TEST_CASE(a_refused_event_is_a_failed_attempt) {
  agent_fixture on;
  const auto root
    = workflow({.name = "w",
                .nodes = {function("a",
                                   [](node_context& context) {
                                     context.state().set("n", "text");
                                     context.state().add("n", 1);
                                     return json(1);
                                   })},
                .edges = {{"START", "a"}}});
  BOOST_TEST(on.perform(root).find("| type_error") != std::string::npos);
  BOOST_TEST(on.last_reason().find("'a'") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_join_that_is_stuck_fails_the_run) {
  agent_fixture on;
  const auto root = workflow(
    {.name = "w",
     .nodes
     = {function("a", [](node_context&) { return node_output(1, {"x"}); }),
        passes("b"),
        passes("c"),
        {.name = "j", .work = join()}},
     .edges = {{"START", "a"},
               {"a", "b", {"x"}},
               {"a", "c", {"y"}},
               {"b", "j"},
               {"c", "j"}}});
  BOOST_TEST(on.perform(root).find("| stuck_join") != std::string::npos);
  BOOST_TEST(on.last_reason().find("join 'j' waits for c")
             != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_cancelled_run_ends_its_nodes) {
  agent_fixture on;
  const auto ended = std::make_shared<tally>();
  const auto begun = std::make_shared<tally>();
  const auto root
    = workflow({.name = "w",
                .nodes = {sleeps("a", ended),
                          function("b",
                                   [begun](node_context& context)
                                     -> task<std::optional<node_output>> {
                                     begun->add();
                                     co_await context.sleep(24h);
                                     co_return std::nullopt;
                                   })},
                .edges = {{"START", "a"}, {"START", "b"}}});
  auto started = on.runtime.run(root, on.key, {"go"});
  begun->await(1);
  started.cancel();
  BOOST_TEST(on.show(std::move(started)).find("| cancelled")
             != std::string::npos);
  BOOST_TEST(ended->count() == 1U);
}

BOOST_AUTO_TEST_CASE(
  a_function_that_runs_when_the_run_is_cancelled_leaves_nothing) {
  agent_fixture on;
  const auto begun = std::make_shared<tally>();
  const auto cancelled = std::make_shared<tally>();
  const auto node = function("a", [begun, cancelled](node_context& context) {
    context.state().set("n", 1);
    begun->add();
    cancelled->await(1);
    return json(1);
  });
  auto started = on.runtime.run(
    workflow({.name = "w", .nodes = {node}, .edges = {{"START", "a"}}}),
    on.key,
    {"go"});
  begun->await(1);
  started.cancel();
  cancelled->add();
  BOOST_TEST(on.show(std::move(started)).find("| cancelled")
             != std::string::npos);
  BOOST_TEST(ends(on, on.key) == "");
  BOOST_TEST(failed(on, on.key) == "");
  BOOST_TEST(!on.state_now().contains("n"));
}

BOOST_AUTO_TEST_CASE(a_cancelled_run_does_not_wait_for_the_next_attempt) {
  agent_fixture on;
  const auto begun = std::make_shared<tally>();
  auto node = function("a", [begun](node_context&) -> json {
    begun->add();
    throw error(errc::tool_failed, "no");
  });
  node.retry = {.attempts_max = 2, .first_delay = 24h, .delay_max = 24h};
  auto started = on.runtime.run(
    workflow({.name = "w", .nodes = {node}, .edges = {{"START", "a"}}}),
    on.key,
    {"go"});
  begun->await(1);
  // The failure is an event of the run.
  while (failed(on, on.key).empty())
    std::this_thread::yield();
  started.cancel();
  BOOST_TEST(on.show(std::move(started)).find("| cancelled")
             != std::string::npos);
}

// -- events of nodes ----

BOOST_AUTO_TEST_CASE(events_of_a_node_come_once_over_its_attempts) {
  agent_fixture on;
  auto node = function(
    "a", [](node_context& context) -> task<std::optional<node_output>> {
      co_await context.emit(text("step"));
      if (context.attempt() == 1)
        throw error(errc::tool_failed, "no");
      co_return node_output(2);
    });
  node.retry = at_once;
  const auto root
    = workflow({.name = "w", .nodes = {node}, .edges = {{"START", "a"}}});
  BOOST_TEST(on.perform(root).find("| ok") != std::string::npos);
  int steps = 0;
  for (const auto& each : on.events(on.key))
    steps += each->text() == "step" ? 1 : 0;
  BOOST_TEST(steps == 1);
}

BOOST_AUTO_TEST_CASE(another_event_at_the_same_place_is_a_conflict) {
  agent_fixture on;
  auto node = function(
    "a", [](node_context& context) -> task<std::optional<node_output>> {
      co_await context.emit(text("step {}", context.attempt()));
      throw error(errc::tool_failed, "no");
    });
  node.retry = {.attempts_max = 2, .first_delay = 0ms};
  const auto root
    = workflow({.name = "w", .nodes = {node}, .edges = {{"START", "a"}}});
  BOOST_TEST(on.perform(root).find("| conflict") != std::string::npos);
  BOOST_TEST(on.last_reason().find("'a'") != std::string::npos);
}

// -- pauses ----

BOOST_AUTO_TEST_CASE(a_paused_workflow_goes_on_where_it_was) {
  pause_fixture on;
  const auto runs = std::make_shared<std::atomic<int>>(0);
  const auto counts = function("b", [runs](node_context&) {
    ++*runs;
    return json("b");
  });
  const auto root = workflow({.name = "w",
                              .nodes = {{.work = one_call("asker", order())},
                                        counts,
                                        {.name = "j", .work = join()},
                                        passes("c")},
                              .edges = {{"START", "asker"},
                                        {"START", "b"},
                                        {"asker", "j"},
                                        {"b", "j"},
                                        {"j", "c"}}});
  on.go(root);
  BOOST_TEST_REQUIRE(on.waits.size() == 1U);
  BOOST_TEST(ends(on, on.key) == R"x(w@1/b@1="b" )x");
  BOOST_TEST(on.answer(root, {{"ticket", 7}}).find("| ok")
             != std::string::npos);
  BOOST_TEST(runs->load() == 1);
  BOOST_TEST(
    ends(on, on.key)
      .find(R"x(w@1/asker@1="done" w@1/j@1={"asker":"done","b":"b"} )x")
    != std::string::npos);
}

BOOST_AUTO_TEST_CASE(questions_are_answered_in_any_order) {
  pause_fixture on;
  const auto root = workflow(
    {.name = "w",
     .nodes = {{.work = one_call("one", order())},
               {.work = one_call("two", order())},
               {.name = "j", .work = join()}},
     .edges
     = {{"START", "one"}, {"START", "two"}, {"one", "j"}, {"two", "j"}}});
  on.go(root);
  BOOST_TEST_REQUIRE(on.waits.size() == 2U);
  on.answer(root, {{"ticket", 2}}, 1);
  BOOST_TEST_REQUIRE(on.waits.size() == 1U);
  on.answer(root, {{"ticket", 1}});
  BOOST_TEST(on.waits.empty());
  BOOST_TEST(ends(on, on.key).find(R"x(w@1/j@1={"one":"done","two":"done"} )x")
             != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_changed_graph_cannot_go_on) {
  pause_fixture on;
  const auto asker = one_call("asker", order());
  const auto root = workflow({.name = "w",
                              .nodes = {{.work = asker}, passes("c")},
                              .edges = {{"START", "asker"}, {"asker", "c"}}});
  const auto changed
    = workflow({.name = "w",
                .nodes = {{.work = asker}, passes("c"), passes("d")},
                .edges = {{"START", "asker"}, {"asker", "c"}, {"c", "d"}}});
  on.go(root);
  BOOST_TEST(on.answer(changed, {{"ticket", 7}}).find("| conflict")
             != std::string::npos);
  BOOST_TEST(on.last_reason().find("'c'") != std::string::npos);
  // The question is still open, and the right graph goes on.
  on.waits = {on.events(on.key)[2]->long_running_tool_ids.at(0)};
  BOOST_TEST(on.answer(root, {{"ticket", 7}}).find("| ok")
             != std::string::npos);
}

BOOST_AUTO_TEST_CASE(another_body_goes_on_and_another_structure_does_not) {
  pause_fixture on;
  const auto asker = one_call("asker", order());
  const auto made = [&asker](workflow_node last,
                             std::vector<workflow_edge> more) {
    std::vector<workflow_edge> edges
      = {{"START", "asker"}, {"asker", "c"}, {"c", last.name}};
    edges.insert(edges.end(), more.begin(), more.end());
    return workflow({.name = "w",
                     .nodes = {{.work = asker}, passes("c"), std::move(last)},
                     .edges = std::move(edges)});
  };
  on.go(made(passes("d"), {}));
  const auto id = on.waits.at(0);
  const auto renamed = made(passes("e"), {});
  const auto more_edges = made(passes("d"), {{"asker", "d"}});
  for (const auto& changed : {renamed, more_edges}) {
    on.waits = {id};
    BOOST_TEST(on.answer(changed, {{"ticket", 7}}).find("| conflict")
               != std::string::npos);
    BOOST_TEST(on.last_reason().find("workflow 'w'") != std::string::npos,
               on.last_reason());
    BOOST_TEST(ends(on, on.key) == "");
  }
  on.waits = {id};
  const auto other_body
    = function("d", [](node_context&) { return json("new"); });
  BOOST_TEST(on.answer(made(other_body, {}), {{"ticket", 7}}).find("| ok")
             != std::string::npos);
  BOOST_TEST(ends(on, on.key).find(R"x(w@1/d@1="new")x") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(runs_of_one_session_at_once_mix_nothing) {
  agent_fixture on;
  const auto begun = std::make_shared<tally>();
  const auto meets = function(
    "a", [begun](node_context& context) -> task<std::optional<node_output>> {
      begun->add();
      while (begun->count() < 2)
        co_await context.sleep(1ms);
      co_return node_output(context.input());
    });
  const auto root = workflow({.name = "w",
                              .nodes = {meets, passes("b")},
                              .edges = {{"START", "a"}, {"a", "b"}}});
  const run_options beside{.policy = run_policy::interleave};
  auto one = on.runtime.run(root, on.key, {"one"}, beside);
  auto two = on.runtime.run(root, on.key, {"two"}, beside);
  const std::string first = one.invocation_id();
  const std::string second = two.invocation_id();
  BOOST_TEST(on.show(std::move(one)).ends_with("| ok"));
  BOOST_TEST(on.show(std::move(two)).ends_with("| ok"));
  std::map<std::string, std::string> found; // By run.
  for (const auto& each : on.events(on.key))
    if (const auto said = record_in(*each);
        said && said->is == workflow_record::kind::end) {
      BOOST_TEST(each->invocation_id == said->at.run);
      found[said->at.run] += path_of(said->at, said->node, said->ordinal) + "="
                             + to_text(said->data) + " ";
    }
  BOOST_TEST(found.size() == 2U);
  BOOST_TEST(found[first] == R"x(w@1/a@1="one" w@1/b@1="b(\"one\")" )x");
  BOOST_TEST(found[second] == R"x(w@1/a@1="two" w@1/b@1="b(\"two\")" )x");
}

BOOST_AUTO_TEST_CASE(nodes_of_one_name_on_two_levels_have_their_own_paths) {
  agent_fixture on;
  const auto inner = workflow(
    {.name = "inner", .nodes = {passes("a")}, .edges = {{"START", "a"}}});
  const auto root
    = workflow({.name = "w",
                .nodes = {function("a", [](node_context&) { return json(1); }),
                          {.work = inner}},
                .edges = {{"START", "a"}, {"a", "inner"}}});
  BOOST_TEST(on.perform(root).ends_with("| ok"));
  BOOST_TEST(ends(on, on.key)
             == R"x(w@1/a@1=1 w@1/inner@1/inner@1/a@1="a(1)" )x"
                R"x(w@1/inner@1/inner@1="a(1)". w@1/inner@1="a(1)" )x"
                R"x(w@1="a(1)". )x");
}

BOOST_AUTO_TEST_SUITE_END()
