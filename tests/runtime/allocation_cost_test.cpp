// Upper bounds of the allocations of an event, an append and a run, with
// g++ 12 and the packages of Debian 12. This program is separate because it
// counts all allocations of its process.
//
// A bound that becomes too small: find the new allocation, and raise the bound
// only if it is needed.

#include "troupe/agents/workflow.hpp"
#include "troupe/contexts/task.hpp"
#include "troupe/models/model.hpp"
#include "troupe/runtime/runtime.hpp"

#include "../../benchmarks/sample_event.hpp"
#include "../counted_allocations.hpp"
#include <boost/test/unit_test.hpp>
#include <fmt/format.h>

#include <cstddef>
#include <exception>
#include <functional>
#include <latch>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace troupe;
using troupe::testing::allocations;

constexpr std::size_t rounds = 256;

// Allocations per round, rounded down: a log has a new chunk for every 32
// events, and vectors grow.
class average {
public:
  std::size_t per_round() const { return (allocations - before_) / rounds; }

private:
  const std::size_t before_ = allocations;
};

std::size_t cost_of(const std::function<void()>& act) {
  for (std::size_t round = 0; round < rounds; ++round)
    act();
  const average counted;
  for (std::size_t round = 0; round < rounds; ++round)
    act();
  return counted.per_round();
}

task<> count(const std::function<task<>()>& act, std::size_t& cost) {
  for (std::size_t round = 0; round < rounds; ++round)
    co_await act();
  const average counted;
  for (std::size_t round = 0; round < rounds; ++round)
    co_await act();
  cost = counted.per_round();
}

// The cost in a coroutine, which continues on the thread of the runtime.
std::size_t cost_of_task(const std::function<task<>()>& act) {
  std::size_t cost = 0;
  std::latch ended(1);
  start(count(act, cost), [&ended](const std::exception_ptr& failure) {
    if (failure)
      std::terminate();
    ended.count_down();
  });
  ended.wait();
  return cost;
}

// Answers a tool's result with text, and calls the tool before.
class calling_model : public model {
public:
  std::string name() const override { return "calling"; }

  void generate(model_request request, model_reply reply) override {
    const auto& last = request.contents.back()->parts.front();
    content said("model", {});
    if (last.response() != nullptr)
      said.parts.emplace_back("done");
    else
      said.parts.emplace_back(function_call("", "count", json::object()));
    reply(model_response(std::move(said)));
  }
};

// Agents that each emit one event with one key.
std::vector<agent> speakers(std::size_t count) {
  std::vector<agent> made;
  for (std::size_t index = 0; index < count; ++index)
    made.push_back(custom(fmt::format("agent_{}", index),
                          [key = fmt::format("key_{}", index)](
                            invocation_context& context) -> agent_run {
                            context.state().set(key, 1);
                            co_await context.emit(text("done"));
                          }));
  return made;
}

agent counter() {
  const tool count(
    {.name = "count", .run = [](const json&, tool_context& context) -> json {
       context.state().add("n", 1);
       return 1;
     }});
  return llm({.name = "agent",
              .model = std::make_shared<calling_model>(),
              .tools = {count},
              .include_contents = include_contents::none});
}

// A workflow of functions, one after another.
agent chain(std::size_t count) {
  workflow_options options{.name = "chain"};
  for (std::size_t index = 0; index < count; ++index) {
    options.nodes.push_back(
      {.name = fmt::format("n{}", index),
       .work = node_function([index](node_context&) { return json(index); })});
    options.edges.push_back(
      {index == 0 ? "START" : fmt::format("n{}", index - 1),
       fmt::format("n{}", index)});
  }
  return workflow(std::move(options));
}

// A runtime with one session and one thread.
class counted_runtime {
public:
  std::size_t cost_of_run(const agent& root) {
    return cost_of_task([&, this]() -> task<> {
      auto run = runtime_.run(root, key_, "go");
      const auto ended = co_await run.wait();
      ended.value();
    });
  }

  std::size_t cost_of_append() {
    return cost_of([this] { append().value(); });
  }

  std::size_t cost_of_awaited_append() {
    return cost_of_task([this]() -> task<> {
      const auto appended = co_await append();
      appended.value();
    });
  }

private:
  static std::vector<event_ptr> make_events() {
    std::vector<event_ptr> made;
    for (std::size_t number = 0; number < 2 * rounds; ++number)
      made.push_back(std::make_shared<const event>(bench::build_event(number)));
    return made;
  }

  pending<event_ptr> append() {
    return runtime_.sessions().append_event(key_, events_.at(next_++));
  }

  runtime runtime_ = runtime::open({.threads = 1}).value();
  const session_key key_
    = runtime_.sessions().create({"app", "user", "session"}).value().key();
  const std::vector<event_ptr> events_ = make_events();
  std::size_t next_ = 0;
};

} // namespace

BOOST_AUTO_TEST_SUITE(allocation_cost)

BOOST_AUTO_TEST_CASE(of_a_built_event) {
  const auto build
    = [] { return std::make_shared<const event>(bench::build_event(1)); };
  BOOST_TEST(cost_of(build) <= 19);
}

BOOST_FIXTURE_TEST_CASE(of_a_blocking_append, counted_runtime) {
  BOOST_TEST(cost_of_append() <= 2);
}

BOOST_FIXTURE_TEST_CASE(of_an_awaited_append, counted_runtime) {
  BOOST_TEST(cost_of_awaited_append() <= 2);
}

// About three allocations for each agent are the texts of its place.
BOOST_FIXTURE_TEST_CASE(of_a_sequence_of_three_agents, counted_runtime) {
  BOOST_TEST(cost_of_run(sequential("sequence", speakers(3))) <= 55);
}

BOOST_FIXTURE_TEST_CASE(of_a_fan_out_to_five_agents, counted_runtime) {
  BOOST_TEST(cost_of_run(parallel("lanes", speakers(5))) <= 97);
}

BOOST_FIXTURE_TEST_CASE(of_a_turn_with_a_tool_call, counted_runtime) {
  BOOST_TEST(cost_of_run(counter()) <= 141);
}

// None of them has a lane of its own.
BOOST_FIXTURE_TEST_CASE(of_a_chain_of_twenty_functions, counted_runtime) {
  BOOST_TEST(cost_of_run(chain(20)) <= 960);
}

BOOST_AUTO_TEST_SUITE_END()
