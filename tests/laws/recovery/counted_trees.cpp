#include "counted_trees.hpp"

#include "troupe/agents/workflow.hpp"
#include "troupe/models/model.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>

namespace troupe::testing {

namespace {

// -- models and tools ----

content spoken(const std::string& said) {
  return {"model", {part(said)}};
}

content call_of(const std::string& name) {
  content said("model", {});
  said.parts.emplace_back(function_call{"", name, json::object()});
  return said;
}

// A model that answers by the conversation: its n-th answer in the conversation
// is the n-th of a list. So a model of another process goes on where the
// conversation is.
class counted_model final : public model {
public:
  counted_model(outside_ptr outside, std::vector<content> answers)
    : outside_(std::move(outside)),
      answers_(std::move(answers)) {}

  std::string name() const override { return "counted"; }

  void generate(model_request request, model_reply reply) override {
    outside_->note("model:" + request.agent, request.key, {});
    const auto said = std::ranges::count_if(
      request.contents, [](const auto& each) { return each->role == "model"; });
    const auto index
      = std::min(static_cast<std::size_t>(said), answers_.size() - 1);
    request.environment->call_after(
      outside_->delay(), [answer = answers_[index], reply = std::move(reply)] {
        reply(model_response(answer));
      });
  }

private:
  const outside_ptr outside_;
  const std::vector<content> answers_;
};

// A tool that adds 1 to keys of the session, the user and the app.
tool counted_tool(const outside_ptr& outside, const std::string& name) {
  return tool(
    {.name = name,
     .run = [outside, name](const json&, tool_context& context) -> json {
       outside->note(
         "tool:" + name, context.function_call_id(), context.invocation_id());
       context.state().add(name, 1);
       context.state().add("user:tools", 1);
       outside->work();
       context.state().add("app:tools", 1);
       return {{"did", name}};
     }});
}

// An agent whose model calls these tools, one after another, and then says its
// name.
agent thinker(const outside_ptr& outside,
              const std::string& name,
              const std::vector<std::string>& tools) {
  std::vector<content> answers;
  std::vector<tool> made;
  for (const auto& each : tools) {
    answers.push_back(call_of(each));
    made.push_back(counted_tool(outside, each));
  }
  answers.push_back(spoken(name));
  return llm(
    {.name = name,
     .model = std::make_shared<counted_model>(outside, std::move(answers)),
     .tools = std::move(made),
     .output_key = name + "_said"});
}

// -- agents with a body ----

// An agent that adds 1 to a key twice, with one event each.
agent adder(const outside_ptr& outside,
            const std::string& name,
            const std::string& key) {
  return custom(
    name, [outside, name, key](invocation_context& context) -> agent_run {
      outside->note(
        "body:" + name, context.invocation_id(), context.invocation_id());
      co_await context.sleep(outside->delay());
      context.state().add(key, 1);
      co_await context.emit(text("{} began", name));
      co_await context.sleep(outside->delay());
      context.state().add(key, 1);
      context.state().add("user:bodies", 1);
      co_await context.emit(text("{} ended", name));
    });
}

// An agent that ends its loop once `key` has reached `least`.
agent checker(const outside_ptr& outside,
              const std::string& name,
              const std::string& key,
              int least) {
  return custom(
    name, [outside, key, least](invocation_context& context) -> agent_run {
      co_await context.sleep(outside->delay());
      context.state().add("checks", 1);
      context.actions().escalate = context.state().get<int>(key) >= least;
      co_await context.emit(text("checked"));
    });
}

// -- nodes ----

// A node that adds 1 to the key of its name.
workflow_node counted_node(const outside_ptr& outside,
                           const std::string& name) {
  return {
    .name = name,
    .work = [outside,
             name](node_context& context) -> task<std::optional<node_output>> {
      outside->note("node:" + name, context.key(), context.invocation_id());
      co_await context.sleep(outside->delay());
      context.state().add(name, 1);
      context.state().add("app:nodes", 1);
      co_return node_output(name);
    }};
}

// A node that is visited three times, and whose first attempt fails each time.
workflow_node cycle(const outside_ptr& outside) {
  workflow_node made;
  made.name = "cycle";
  made.work
    = [outside](node_context& context) -> task<std::optional<node_output>> {
    outside->note("node:cycle", context.key(), context.invocation_id());
    co_await context.sleep(outside->delay());
    context.state().add("rounds", 1);
    if (context.attempt() == 1)
      throw error(errc::tool_failed, "the first attempt fails");
    const bool more = context.key().find("/cycle@3") == std::string::npos;
    std::vector<route> routes;
    routes.emplace_back(more);
    co_return node_output("round", std::move(routes));
  };
  made.retry = {.attempts_max = 2,
                .first_delay = std::chrono::milliseconds(1),
                .jitter = 0};
  return made;
}

// -- trees ----

agent sequence(const outside_ptr& outside) {
  return sequential("sequence",
                    {adder(outside, "first", "n"),
                     thinker(outside, "second", {"look", "note"}),
                     adder(outside, "third", "n"),
                     adder(outside, "fourth", "user:n")});
}

agent counted_loop(const outside_ptr& outside) {
  return sequential(
    "looping",
    {loop({.name = "rounds", .max_iterations = 9},
          {adder(outside, "worker", "n"), checker(outside, "judge", "n", 6)}),
     adder(outside, "last", "ended")});
}

agent lanes(const outside_ptr& outside) {
  return sequential("laned",
                    {parallel("lanes",
                              {thinker(outside, "left", {"look"}),
                               sequential("middle",
                                          {adder(outside, "upper", "n"),
                                           adder(outside, "lower", "app:n")}),
                               adder(outside, "right", "n")}),
                     adder(outside, "last", "n")});
}

agent mapped(const outside_ptr& outside) {
  return sequential(
    "mapped",
    {map({.name = "items", .items_key = "list", .output_key = "results"},
         thinker(outside, "element", {"look"})),
     adder(outside, "last", "n")});
}

agent graph(const outside_ptr& outside) {
  workflow_node joined;
  joined.name = "joined";
  joined.work = join();
  workflow_node asks;
  asks.work = thinker(outside, "writer", {"note"});
  return workflow({.name = "graph",
                   .nodes = {counted_node(outside, "one"),
                             counted_node(outside, "two"),
                             std::move(joined),
                             cycle(outside),
                             std::move(asks),
                             counted_node(outside, "end")},
                   .edges = {{workflow_start, "one"},
                             {workflow_start, "two"},
                             {"one", "joined"},
                             {"two", "joined"},
                             {"joined", "cycle"},
                             {"cycle", "cycle", {true}},
                             {"cycle", "writer", {false}},
                             {"writer", "end"}},
                   .output_key = "out"});
}

agent nested(const outside_ptr& outside) {
  auto inner = workflow(
    {.name = "inner",
     .nodes = {counted_node(outside, "one"), counted_node(outside, "two")},
     .edges = {{workflow_start, "one"}, {"one", "two"}}});
  return loop(
    {.name = "nested", .max_iterations = 2},
    {parallel("beside", {std::move(inner), adder(outside, "alone", "n")}),
     thinker(outside, "says", {})});
}

} // namespace

const std::vector<counted_tree>& counted_trees() {
  static const json list{{"list", json::array({1, 2, 3})}};
  static const std::vector<counted_tree> all{
    {.name = "sequence",
     .make = sequence,
     .ended_by = {{"body:first", "second"}, {"body:third", "fourth"}}},
    {.name = "looping", .make = counted_loop},
    {.name = "laned",
     .make = lanes,
     .ended_by = {{"body:upper", "lower"}, {"body:right", "last"}}},
    {.name = "mapped", .make = mapped, .delta = list},
    {.name = "graph", .make = graph},
    {.name = "nested", .make = nested}};
  return all;
}

} // namespace troupe::testing
