// Trees of agents for tests of recovered runs. Each tree counts its calls, and
// a fresh copy of it goes on from the events of another copy: models answer by
// the conversation, and not by the number of their calls.

#pragma once

#include "troupe/agents/agent_tool.hpp"
#include "troupe/contexts/lanes/event_place.hpp"

#include "workflow_nodes.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace troupe::testing {

/// Number of calls by name: `model:AGENT`, `tool:NAME`, `node:NAME`,
/// `item:NODE` for the items of maps, `before:AGENT`, `after:AGENT`,
/// `update:AGENT`, `body:AGENT`.
using counts = std::map<std::string, int>;

/// Counts the calls of one process. Thread-safe.
class call_counter {
public:
  void add(const std::string& name) {
    const std::lock_guard guard(mutex_);
    ++counts_[name];
  }

  counts taken() const {
    const std::lock_guard guard(mutex_);
    return counts_;
  }

  int of(const std::string& name) const {
    const auto all = taken();
    const auto found = all.find(name);
    return found == all.end() ? 0 : found->second;
  }

private:
  mutable std::mutex mutex_;
  counts counts_;
};

using counter = std::shared_ptr<call_counter>;

inline counter make_counter() {
  return std::make_shared<call_counter>();
}

/// Chooses the reply to a request, from 0. A number above the last reply stands
/// for the last one.
using reply_choice = std::function<std::size_t(const model_request&)>;

/// Counts the answers of the agent in its conversation.
inline std::size_t own_answers(const model_request& request) {
  return static_cast<std::size_t>(std::ranges::count_if(
    request.contents, [](const auto& each) { return each->role == "model"; }));
}

inline content content_of(const scripted_reply& reply) {
  content said("model", {});
  if (!reply.text.empty())
    said.parts.emplace_back(reply.text);
  for (const auto& each : reply.function_calls)
    said.parts.emplace_back(each);
  return said;
}

/// A model that answers by the conversation.
inline model_ptr answers_by(const counter& count,
                            const std::string& name,
                            std::vector<scripted_reply> replies,
                            reply_choice choose = own_answers) {
  return std::make_shared<made_model>(
    [count, name, replies = std::move(replies), choose = std::move(choose)](
      const model_request& request, const model_reply& reply) {
      count->add(name);
      const auto index = std::min(choose(request), replies.size() - 1);
      reply(model_response(content_of(replies[index])));
    });
}

/// Options of an LLM agent whose model counts its calls as `model:NAME`.
inline llm_options thinker(const counter& count,
                           const std::string& name,
                           std::vector<scripted_reply> replies,
                           std::vector<tool> tools = {}) {
  return {.name = name,
          .model = answers_by(count, "model:" + name, std::move(replies)),
          .tools = std::move(tools)};
}

inline agent thinks(const counter& count,
                    const std::string& name,
                    std::vector<scripted_reply> replies,
                    std::vector<tool> tools = {}) {
  return llm(thinker(count, name, std::move(replies), std::move(tools)));
}

/// A tool that adds 1 to the state key of its name.
inline tool counting_tool(const counter& count, const std::string& name) {
  return tool_of(name,
                 [count, name](const json&, tool_context& context) -> json {
                   count->add("tool:" + name);
                   context.state().add(name, 1);
                   return {{"did", name}};
                 });
}

/// A custom agent that adds 1 to a state key. Its text does not depend on the
/// state, since a body that runs again must repeat its events.
inline agent
adder(const counter& count, const std::string& name, const std::string& key) {
  return custom(name,
                [count, name, key](invocation_context& context) -> agent_run {
                  count->add("body:" + name);
                  context.state().add(key, 1);
                  co_await context.emit(text("{} was here", name));
                });
}

/// A custom agent that escalates once `key` is at least `least`.
inline agent checker(const counter& count,
                     const std::string& name,
                     const std::string& key,
                     int least) {
  return custom(
    name, [count, name, key, least](invocation_context& context) -> agent_run {
      count->add("body:" + name);
      context.state().add("checks", 1);
      context.actions().escalate = context.state().get<int>(key) >= least;
      co_await context.emit(text("checked"));
    });
}

/// A node that adds 1 to the state key of its name, and returns its name.
inline workflow_node counting_node(const counter& count,
                                   const std::string& name) {
  return function(name, [count, name](node_context& context) {
    count->add("node:" + name);
    context.state().add(name, 1);
    return json(name);
  });
}

/// One tree, and the message of its run.
struct recovery_tree {
  std::string name;
  std::function<agent(const counter&)> make;
  /// Changes of state with the message.
  json delta = json::object();
  /// True if lanes run at the same time: the order of events is open, and so
  /// are the numbers that they store.
  bool at_once = false;
};

namespace trees {

inline agent one_text(const counter& count) {
  auto options = thinker(count, "a", {{.text = "hello"}});
  options.output_key = "said";
  return llm(std::move(options));
}

inline agent two_calls(const counter& count) {
  return thinks(count,
                "a",
                {calling("one"), calling("two"), {.text = "done"}},
                {counting_tool(count, "one"), counting_tool(count, "two")});
}

inline agent calls_at_once(const counter& count) {
  const auto writes
    = tool_of("writes", [count](const json& args, tool_context& context) {
        count->add("tool:writes");
        context.state().add("sum", args.at("n").get<int>());
        context.state().append("list", args.at("n"));
        context.state().add("user:sum", 1);
        context.state().add("app:sum", 1);
        return json("written");
      });
  scripted_reply all;
  all.text = "I call";
  all.function_calls = {{"", "one", json::object()},
                        {"", "writes", json{{"n", 5}}},
                        {"", "two", json::object()}};
  return thinks(
    count,
    "a",
    {all, {.text = "done"}},
    {counting_tool(count, "one"), writes, counting_tool(count, "two")});
}

inline agent three_in_order(const counter& count) {
  return sequential("s",
                    {adder(count, "first", "user:n"),
                     thinks(count,
                            "second",
                            {calling("one"), {.text = "middle"}},
                            {counting_tool(count, "one")}),
                     adder(count, "third", "n")});
}

inline agent loop_with_exit(const counter& count) {
  return loop(
    {.name = "l"},
    {adder(count, "works", "n"),
     thinks(count,
            "judge",
            {{.text = "more"}, {.text = "more"}, calling("exit_loop")},
            {exit_loop()})});
}

inline agent loop_with_checker(const counter& count) {
  return sequential(
    "s",
    {loop({.name = "l", .max_iterations = 9},
          {adder(count, "works", "n"), checker(count, "judge", "n", 3)}),
     adder(count, "last", "ended")});
}

inline agent loop_with_limit(const counter& count) {
  return loop({.name = "outer", .max_iterations = 2},
              {adder(count, "begins", "outer"),
               loop({.name = "inner", .max_iterations = 2},
                    {adder(count, "works", "n"),
                     thinks(count, "says", {{.text = "yes"}})})});
}

inline agent lanes(const counter& count) {
  auto one = thinker(
    count, "one", {calling("t"), {.text = "1"}}, {counting_tool(count, "t")});
  one.output_key = "of_one";
  auto two = thinker(count, "two", {{.text = "2"}});
  two.output_key = "user:of_two";
  return sequential(
    "s",
    {parallel(
       "p",
       {llm(std::move(one)), llm(std::move(two)), adder(count, "three", "n")}),
     adder(count, "last", "n")});
}

inline agent lanes_with_failure(const counter& count) {
  const auto breaks
    = custom("breaks", [count](invocation_context& context) -> agent_run {
        count->add("body:breaks");
        context.state().add("n", 1);
        co_await context.emit(text("I try"));
        throw error(errc::tool_failed, "broken");
      });
  return sequential(
    "s",
    {parallel({.name = "p", .on_failure = lane_failures::collect},
              {thinks(count,
                      "one",
                      {calling("t"), {.text = "1"}},
                      {counting_tool(count, "t")}),
               breaks,
               adder(count, "three", "n")}),
     adder(count, "last", "n")});
}

inline agent map_with_texts(const counter& count) {
  return sequential(
    "s",
    {map({.name = "m", .items_key = "items", .output_key = "results"},
         custom("works",
                [count](invocation_context& context) -> agent_run {
                  count->add("body:works");
                  context.state().add("sum", 1);
                  co_await context.emit(text(
                    "item {}", text_of(context.state().find("temp:item"))));
                })),
     adder(count, "last", "n")});
}

inline agent map_with_results(const counter& count) {
  return sequential(
    "s",
    {map({.name = "m", .items_key = "items", .output_key = "results"},
         custom("works",
                [count](invocation_context& context) -> agent_run {
                  count->add("body:works");
                  const auto item = context.state().get<int>("temp:item");
                  context.state().add("sum", item);
                  context.state().set("temp:result", item * 10);
                  co_await context.emit(text("working"));
                })),
     // The list changes behind the map.
     custom("last", [count](invocation_context& context) -> agent_run {
       count->add("body:last");
       context.state().append("items", 4);
       co_await context.emit(text("last"));
     })});
}

inline agent map_with_models(const counter& count) {
  return map({.name = "m", .items_key = "items", .output_key = "results"},
             thinks(count,
                    "works",
                    {calling("t"), {.text = "result"}},
                    {counting_tool(count, "t")}));
}

inline agent hand_over(const counter& count) {
  const auto handing_to = [](const std::string& name, std::string words) {
    auto reply = calling("transfer_to_agent", {{"agent_name", name}});
    reply.text = std::move(words);
    return reply;
  };
  auto chat = thinker(
    count, "chat", {handing_to("billing", "please"), {.text = "all is paid"}});
  auto billing = thinker(count,
                         "billing",
                         {calling("pay"), handing_to("chat", "I have paid")},
                         {counting_tool(count, "pay")});
  return sequential("s",
                    {llm(std::move(chat), {llm(std::move(billing))}),
                     adder(count, "last", "n")});
}

inline agent custom_body(const counter& count) {
  const auto first = thinks(count,
                            "first",
                            {calling("one"), {.text = "1"}},
                            {counting_tool(count, "one")});
  const auto second = adder(count, "second", "n");
  return custom(
    "boss",
    [count, first, second](invocation_context& context) -> agent_run {
      count->add("body:boss");
      context.state().add("steps", 1);
      co_await context.emit(text("one"));
      co_await context.run(first);
      // In a variable: g++ 12 destroys a temporary of such a type twice.
      const state_update add_ten = [count](const std::optional<json>& now) {
        count->add("update:boss");
        return json((now ? now->get<int>() : 0) + 10);
      };
      const auto total = co_await context.update("total", add_ten);
      context.state().add("steps", 1);
      co_await context.emit(text("two {}", to_text(total)));
      co_await context.run(second);
      context.state().add("user:steps", 1);
      co_await context.emit(text("three"));
      context.state().add("left", 1);
    },
    {first, second});
}

inline agent callbacks(const counter& count) {
  const auto counts_in = [count](const std::string& name, std::string key) {
    return agent_callback([count, name, key](callback_context& context) {
      count->add(name);
      context.state().add(key, 1);
    });
  };
  auto writes = thinker(count, "writes", {{.text = "body"}});
  writes.before_agent = {counts_in("before:writes", "before")};
  writes.after_agent = {counts_in("after:writes", "user:after")};
  auto answered = thinker(count, "answered", {{.text = "never said"}});
  answered.before_agent = {agent_callback(
    [count](callback_context& context) -> std::optional<content> {
      count->add("before:answered");
      context.state().add("answers", 1);
      return text("from the callback");
    })};
  answered.after_agent = {counts_in("after:answered", "never")};
  auto adds = thinker(count, "adds", {{.text = "body"}});
  adds.after_agent = {agent_callback(
    [count](callback_context& context) -> std::optional<content> {
      count->add("after:adds");
      context.state().add("added", 1);
      return text("and more");
    })};
  return sequential(
    {.name = "s",
     .before_agent = {counts_in("before:s", "before")},
     .after_agent = {counts_in("after:s", "after")}},
    {llm(std::move(writes)), llm(std::move(answered)), llm(std::move(adds))});
}

inline agent delegations(const counter& count) {
  auto clerk
    = thinker(count,
              "clerk",
              {calling("look"), calling("finish_task", {{"result", "an owl"}})},
              {counting_tool(count, "look")});
  clerk.mode = agent_mode::task;
  auto poet = thinker(count,
                      "poet",
                      {calling("rhyme"), {.text = "a rhyme"}},
                      {counting_tool(count, "rhyme")});
  poet.mode = agent_mode::single_turn;
  return llm(thinker(count,
                     "boss",
                     {calling("clerk", {{"request", "find"}}),
                      calling("poet", {{"request", "write"}}),
                      {.text = "done"}}),
             {llm(std::move(clerk)), llm(std::move(poet))});
}

inline agent graph(const counter& count) {
  auto retried = function(
    "retried",
    [count](node_context& context) -> task<std::optional<node_output>> {
      count->add("node:retried");
      context.state().add("tries", 1);
      co_await context.emit(text("try"));
      if (context.attempt() == 1)
        throw error(errc::tool_failed, "the first attempt fails");
      context.state().add("retried", 1);
      co_return node_output("retried");
    });
  retried.retry
    = {.attempts_max = 2, .first_delay = std::chrono::milliseconds(0)};
  auto cycle = function("cycle", [count](node_context& context) {
    count->add("node:cycle");
    context.state().add("rounds", 1);
    const bool more = context.key().find("/cycle@3") == std::string::npos;
    return node_output("round", {more});
  });
  return workflow({.name = "w",
                   .nodes = {counting_node(count, "a"),
                             counting_node(count, "b"),
                             {.name = "j", .work = join()},
                             std::move(retried),
                             std::move(cycle),
                             {.work = thinks(count,
                                             "writer",
                                             {calling("t"), {.text = "text"}},
                                             {counting_tool(count, "t")})},
                             counting_node(count, "z")},
                   .edges = {{"START", "a"},
                             {"START", "b"},
                             {"a", "j"},
                             {"b", "j"},
                             {"j", "retried"},
                             {"retried", "cycle"},
                             {"cycle", "cycle", {true}},
                             {"cycle", "writer", {false}},
                             {"writer", "z"}},
                   .output_key = "out"});
}

inline agent deep_graph(const counter& count) {
  const auto inner
    = workflow({.name = "w",
                .nodes = {counting_node(count, "a"),
                          {.work = thinks(count, "writer", {{.text = "text"}})},
                          counting_node(count, "z")},
                .edges = {{"START", "a"}, {"a", "writer"}, {"writer", "z"}}});
  return parallel("p",
                  {sequential("s",
                              {thinks(count, "x", {{.text = "x"}}),
                               inner,
                               adder(count, "behind", "n")}),
                   adder(count, "beside", "n")});
}

inline agent agent_is_tool(const counter& count) {
  // The inner agent leaves no events, so its calls belong to the tool.
  const auto inner
    = llm({.name = "inner",
           .model = answers_by(count, "tool:inner", {{.text = "inner words"}}),
           .output_key = "inner_said"});
  return sequential("s",
                    {adder(count, "first", "n"),
                     thinks(count,
                            "boss",
                            {calling("inner", {{"request", "go"}}),
                             calling("one"),
                             {.text = "done"}},
                            {agent_tool(inner), counting_tool(count, "one")})});
}

inline agent body_with_repeats(const counter& count) {
  const auto says = thinks(count,
                           "says",
                           {calling("t"), {.text = "yes"}},
                           {counting_tool(count, "t")});
  const auto pair = parallel(
    "pair",
    {adder(count, "left", "n"), thinks(count, "right", {{.text = "r"}})});
  return custom("boss",
                [count, says, pair](invocation_context& context) -> agent_run {
                  count->add("body:boss");
                  // In a variable, as in `custom_body`.
                  const state_update add_one
                    = [count](const std::optional<json>& now) {
                        count->add("update:boss");
                        return json((now ? now->get<int>() : 0) + 1);
                      };
                  for (int round = 1; round <= 2; ++round) {
                    co_await context.run(says);
                    co_await context.run(pair);
                    context.state().add("rounds", 1);
                    co_await context.emit(text("round {}", round));
                    co_await context.update("total", add_one);
                  }
                },
                {says, pair});
}

/// An agent that is silent unless it finds what an agent behind it has done.
inline agent silent_guard(const counter& count) {
  const auto guard
    = custom("guard", [count](invocation_context& context) -> agent_run {
        count->add("body:guard");
        if (!context.state().find("n"))
          co_return;
        context.state().add("n", 100);
        co_await context.emit(text("the guard acted"));
      });
  return sequential(
    "s", {guard, adder(count, "adds", "n"), adder(count, "more", "m")});
}

/// A loop whose silent checker would end it if it looked again later.
inline agent silent_checker(const counter& count) {
  const auto judge
    = custom("judge", [count](invocation_context& context) -> agent_run {
        count->add("body:judge");
        if (context.state().find("n") && context.state().get<int>("n") == 2) {
          context.actions().escalate = true;
          co_await context.emit(text("enough"));
        }
      });
  return loop({.name = "l", .max_iterations = 6},
              {judge, adder(count, "works", "n"), adder(count, "more", "m")});
}

/// An agent that escalates, and then fails.
inline agent escalating_failure(const counter& count) {
  return custom("f", [count](invocation_context& context) -> agent_run {
    count->add("body:f");
    context.state().add("tries", 1);
    context.actions().escalate = true;
    co_await context.emit(text("f tries"));
    throw error(errc::tool_failed, "broken");
  });
}

/// A body that catches a failure, and calls agents by it.
inline agent caught_failure(const counter& count) {
  const auto fails = escalating_failure(count);
  const auto on_failure = adder(count, "on_failure", "failed");
  const auto on_success = adder(count, "on_success", "done");
  const auto boss = custom("boss",
                           [count, fails, on_failure, on_success](
                             invocation_context& context) -> agent_run {
                             count->add("body:boss");
                             bool has_failed = false;
                             try {
                               co_await context.run(fails);
                             } catch (const error&) {
                               has_failed = true;
                             }
                             // A piece of a stream is not stored.
                             co_await context.emit_partial(text("boss"));
                             if (has_failed)
                               co_await context.run(on_failure);
                             else
                               co_await context.run(on_success);
                             co_await context.emit(text("boss {}", has_failed));
                           },
                           {fails, on_failure, on_success});
  return loop({.name = "l", .max_iterations = 2},
              {boss, adder(count, "behind", "m")});
}

/// A lane that escalates and fails does not end the loop around.
inline agent escalating_lane(const counter& count) {
  return loop({.name = "l", .max_iterations = 2},
              {parallel({.name = "p", .on_failure = lane_failures::collect},
                        {escalating_failure(count), adder(count, "x", "n")}),
               adder(count, "behind", "m")});
}

/// A function that makes a list.
inline workflow_node listing_node(const counter& count, const json& items) {
  return function("list", [count, items](node_context&) {
    count->add("node:list");
    return items;
  });
}

/// Maps of a function, an agent and a tool, one behind the other.
inline agent graph_with_maps(const counter& count) {
  const node_function doubles
    = [count](node_context& context) -> task<std::optional<node_output>> {
    count->add("item:doubles");
    context.state().add("doubled", context.input());
    co_await context.emit(text("item {}", to_text(context.input())));
    context.state().add("behind", 1);
    co_return node_output(context.input().get<int>() * 2);
  };
  const auto writer = thinks(count,
                             "writer",
                             {calling("t"), {.text = "text"}},
                             {counting_tool(count, "t")});
  const auto used
    = tool_of("used", [count](const json&, tool_context& context) -> json {
        count->add("item:uses");
        context.state().add("used", 1);
        return "used";
      });
  return workflow(
    {.name = "w",
     .nodes = {listing_node(count, {1, 2, 3}),
               {.name = "doubles", .work = map_over{.work = doubles}},
               {.work = map_over{.work = writer, .lanes_max = 2}},
               function("objects",
                        [count](node_context& context) {
                          count->add("node:objects");
                          auto all = json::array();
                          for (const auto& each : context.input())
                            all.push_back(json::object({{"said", each}}));
                          return all;
                        }),
               {.name = "uses", .work = map_over{.work = used}},
               counting_node(count, "z")},
     .edges = {{"START", "list"},
               {"list", "doubles"},
               {"doubles", "writer"},
               {"writer", "objects"},
               {"objects", "uses"},
               {"uses", "z"}},
     .output_key = "out"});
}

/// A map whose second item fails in the first attempt. The items run one after
/// another, so the calls of a whole run are known.
inline agent map_with_retry(const counter& count) {
  const node_function work = [count](node_context& context) -> json {
    count->add("item:each");
    context.state().add("n", 1);
    if (context.input() == 2 && context.attempt() == 1)
      throw error(errc::tool_failed, "not yet");
    return context.input();
  };
  workflow_node each{.name = "each",
                     .work = map_over{.work = work, .lanes_max = 1}};
  each.retry = {.attempts_max = 2, .first_delay = std::chrono::milliseconds(0)};
  return workflow(
    {.name = "w",
     .nodes = {listing_node(count, {1, 2, 3}), each, counting_node(count, "z")},
     .edges = {{"START", "list"}, {"list", "each"}, {"each", "z"}},
     .output_key = "out"});
}

/// A join that goes on without a node that has failed for good.
inline agent failed_input(const counter& count) {
  auto breaks = function("breaks", [count](node_context& context) -> json {
    count->add("node:breaks");
    context.state().add("tries", 1);
    throw error(errc::tool_failed, "broken");
  });
  breaks.retry
    = {.attempts_max = 2, .first_delay = std::chrono::milliseconds(0)};
  return workflow(
    {.name = "w",
     .nodes = {counting_node(count, "a"),
               std::move(breaks),
               {.name = "j", .work = join{.on_failed = failed_inputs::skip}},
               counting_node(count, "z")},
     .edges = {{"START", "a"},
               {"START", "breaks"},
               {"a", "j"},
               {"breaks", "j"},
               {"j", "z"}},
     .output_key = "out"});
}

/// A cycle with a fork and a join in it, which is run through twice.
inline agent join_in_cycle(const counter& count) {
  auto checks = function("checks", [count](node_context& context) {
    count->add("node:checks");
    context.state().append("seen", context.input());
    const bool more = context.key().find("/checks@2") == std::string::npos;
    return node_output("checked", {more ? "again" : "out"});
  });
  return workflow({.name = "w",
                   .nodes = {counting_node(count, "a"),
                             counting_node(count, "b"),
                             counting_node(count, "c"),
                             {.name = "j", .work = join()},
                             std::move(checks),
                             counting_node(count, "z")},
                   .edges = {{"START", "a"},
                             {"a", "b"},
                             {"a", "c"},
                             {"b", "j"},
                             {"c", "j"},
                             {"j", "checks"},
                             {"checks", "a", {"again"}},
                             {"checks", "z", {"out"}}},
                   .output_key = "out"});
}

/// A join of the first two of three inputs. The nodes run one after another, so
/// it is known which those are.
inline agent quorum(const counter& count) {
  return workflow({.name = "w",
                   .nodes = {counting_node(count, "a"),
                             counting_node(count, "b"),
                             counting_node(count, "c"),
                             {.name = "j", .work = join{.count = 2}},
                             counting_node(count, "z")},
                   .edges = {{"START", "a"},
                             {"START", "b"},
                             {"START", "c"},
                             {"a", "j"},
                             {"b", "j"},
                             {"c", "j"},
                             {"j", "z"}},
                   .lanes_max = 1,
                   .output_key = "out"});
}

/// A join that fires without an input that cannot come.
inline agent missing_input(const counter& count) {
  auto chooses = function("chooses", [count](node_context& context) {
    count->add("node:chooses");
    context.state().add("chooses", 1);
    return node_output("chosen", {"b"});
  });
  return workflow(
    {.name = "w",
     .nodes = {std::move(chooses),
               counting_node(count, "b"),
               counting_node(count, "c"),
               {.name = "j", .work = join{.on_missing = missing_inputs::skip}},
               counting_node(count, "z")},
     .edges = {{"START", "chooses"},
               {"chooses", "b", {"b"}},
               {"chooses", "c", {"c"}},
               {"b", "j"},
               {"c", "j"},
               {"j", "z"}},
     .output_key = "out"});
}

/// Two branches, each with a node that fails once, and agents behind them.
inline agent retried_branches(const counter& count) {
  const auto fails_once = [&count](const std::string& name) {
    auto made = function(name, [count, name](node_context& context) {
      count->add("node:" + name);
      context.state().add(name, 1);
      if (context.attempt() == 1)
        throw error(errc::tool_failed, "not yet");
      return json(name);
    });
    made.retry
      = {.attempts_max = 3, .first_delay = std::chrono::milliseconds(0)};
    return made;
  };
  return workflow({.name = "w",
                   .nodes = {fails_once("a"),
                             fails_once("b"),
                             {.work = thinks(count,
                                             "writer",
                                             {calling("t"), {.text = "text"}},
                                             {counting_tool(count, "t")})},
                             {.work = thinks(count, "poet", {{.text = "ode"}})},
                             {.name = "j", .work = join()},
                             counting_node(count, "z")},
                   .edges = {{"START", "a"},
                             {"START", "b"},
                             {"a", "writer"},
                             {"b", "poet"},
                             {"writer", "j"},
                             {"poet", "j"},
                             {"j", "z"}},
                   .output_key = "out"});
}

inline agent graph_in_loop(const counter& count) {
  const auto inner
    = workflow({.name = "inner",
                .nodes = {counting_node(count, "x"),
                          {.work = adder(count, "agent_x", "n")}},
                .edges = {{"START", "x"}, {"x", "agent_x"}}});
  return loop({.name = "l", .max_iterations = 2},
              {workflow({.name = "w",
                         .nodes = {counting_node(count, "a"),
                                   {.work = inner},
                                   function("makes",
                                            [count](node_context& context) {
                                              count->add("node:makes");
                                              context.state().add("makes", 1);
                                              return json::object();
                                            }),
                                   {.work = counting_tool(count, "as_node")}},
                         .edges = {{"START", "a"},
                                   {"a", "inner"},
                                   {"START", "makes"},
                                   {"makes", "as_node"}}}),
               thinks(count, "says", {{.text = "yes"}})});
}

inline agent map_of_sequences(const counter& count) {
  return map({.name = "m",
              .items_key = "items",
              .output_key = "app:results",
              .lanes_max = 2},
             sequential("s",
                        {adder(count, "one", "user:n"),
                         thinks(count, "two", {{.text = "two"}}),
                         adder(count, "three", "n")}));
}

} // namespace trees

/// All trees.
inline const std::vector<recovery_tree>& all_trees() {
  static const json three{{"items", json::array({1, 2, 3})}};
  static const std::vector<recovery_tree> all{
    {.name = "one_text", .make = trees::one_text},
    {.name = "two_calls", .make = trees::two_calls},
    {.name = "calls_at_once", .make = trees::calls_at_once},
    {.name = "three_in_order", .make = trees::three_in_order},
    {.name = "loop_with_exit", .make = trees::loop_with_exit},
    {.name = "loop_with_checker", .make = trees::loop_with_checker},
    {.name = "loop_with_limit", .make = trees::loop_with_limit},
    {.name = "lanes", .make = trees::lanes, .at_once = true},
    {.name = "lanes_with_failure",
     .make = trees::lanes_with_failure,
     .at_once = true},
    {.name = "map_with_texts",
     .make = trees::map_with_texts,
     .delta = three,
     .at_once = true},
    {.name = "map_with_results",
     .make = trees::map_with_results,
     .delta = three,
     .at_once = true},
    {.name = "map_with_models",
     .make = trees::map_with_models,
     .delta = three,
     .at_once = true},
    {.name = "hand_over", .make = trees::hand_over},
    {.name = "custom_body", .make = trees::custom_body},
    {.name = "body_with_repeats",
     .make = trees::body_with_repeats,
     .at_once = true},
    {.name = "silent_guard", .make = trees::silent_guard},
    {.name = "silent_checker", .make = trees::silent_checker},
    {.name = "caught_failure", .make = trees::caught_failure},
    {.name = "escalating_lane",
     .make = trees::escalating_lane,
     .at_once = true},
    {.name = "callbacks", .make = trees::callbacks},
    {.name = "delegations", .make = trees::delegations},
    {.name = "graph", .make = trees::graph, .at_once = true},
    {.name = "deep_graph", .make = trees::deep_graph, .at_once = true},
    {.name = "graph_with_maps",
     .make = trees::graph_with_maps,
     .at_once = true},
    {.name = "map_with_retry", .make = trees::map_with_retry},
    {.name = "failed_input", .make = trees::failed_input, .at_once = true},
    {.name = "join_in_cycle", .make = trees::join_in_cycle, .at_once = true},
    {.name = "quorum", .make = trees::quorum},
    {.name = "missing_input", .make = trees::missing_input},
    {.name = "retried_branches",
     .make = trees::retried_branches,
     .at_once = true},
    {.name = "agent_is_tool", .make = trees::agent_is_tool},
    {.name = "graph_in_loop", .make = trees::graph_in_loop, .at_once = true},
    {.name = "map_of_sequences",
     .make = trees::map_of_sequences,
     .delta = three,
     .at_once = true}};
  return all;
}

/// A tool whose call says that it has begun and waits to be released.
struct held_tool {
  explicit held_tool(const counter& count)
    : made(tool_of("held",
                   [count, begun = begun, released = released](
                     const json&, tool_context& context) -> json {
                     count->add("tool:held");
                     context.state().add("held", 1);
                     begun->add();
                     released->await(1);
                     return "held";
                   })) {}

  std::shared_ptr<tally> begun = std::make_shared<tally>();
  std::shared_ptr<tally> released = std::make_shared<tally>();
  tool made;
};

/// An agent that calls `used`, whose name is `held`, and then says "done".
inline agent holder(const counter& count, const tool& used) {
  return thinks(count, "a", {calling("held"), {.text = "done"}}, {used});
}

} // namespace troupe::testing
