// Tools in runs: their arguments, failures, time-outs and waits, and the number
// of tools at a time.

#include "troupe/agents/function_tool.hpp"

#include "agent_fixture.hpp"
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <latch>
#include <memory>
#include <mutex>
#include <string>

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(tool_runs)

namespace {

struct sum_query {
  int left = 0;
  std::optional<int> right;

  static constexpr auto parameters
    = std::tuple(parameter("left", &sum_query::left, "The first number"),
                 parameter("right", &sum_query::right));
};

tool sum() {
  return function_tool({.name = "sum", .description = "Adds."},
                       [](const sum_query& query, tool_context& context) {
                         context.state().add("sums", 1);
                         return query.left + query.right.value_or(0);
                       });
}

/// An agent that calls tools in these turns, then says "done".
agent calls(std::vector<scripted_reply> turns, std::vector<tool> tools) {
  turns.push_back({.text = "done"});
  return asks("a", scripted({{"a", std::move(turns)}}), std::move(tools));
}

scripted_reply calling_many(const std::string& name, std::size_t count) {
  scripted_reply reply;
  for (std::size_t index = 0; index < count; ++index)
    reply.function_calls.push_back({"", name, json{{"index", index}}});
  return reply;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_function_is_a_tool_with_the_schema_of_its_struct) {
  agent_fixture on;
  const auto made = sum();
  BOOST_TEST(
    made.parameters()
    == json(
      {{"type", "object"},
       {"properties",
        {{"left", {{"type", "integer"}, {"description", "The first number"}}},
         {"right", {{"type", "integer"}}}}},
       {"required", {"left"}}}));
  on.perform(calls({calling("sum", {{"left", 2}, {"right", 3}}),
                    calling("sum", {{"left", 4}})},
                   {made}));
  BOOST_TEST(responses(on, on.key) == json({{{"result", 5}}, {{"result", 4}}}));
}

BOOST_AUTO_TEST_CASE(arguments_that_do_not_fit_never_reach_the_tool) {
  agent_fixture on;
  on.perform(calls({calling("sum", {{"right", "x"}}),
                    calling("sum", {{"left", 3'000'000'000}})},
                   {sum()}));
  const auto told = responses(on, on.key);
  const auto first = told[0].value("error", "");
  BOOST_TEST(first.find("/right") != std::string::npos, first);
  BOOST_TEST(first.find("'left'") != std::string::npos, first);
  const auto second = told[1].value("error", "");
  BOOST_TEST(second.find("3000000000") != std::string::npos, second);
  BOOST_TEST(!on.state_now().contains("sums"));
}

BOOST_AUTO_TEST_CASE(attached_media_go_to_the_model_with_the_result) {
  agent_fixture on;
  json asked;
  const auto draws = std::make_shared<made_model>(
    [&asked](const model_request& request, const model_reply& reply) {
      const auto& last = *request.contents.back();
      if (last.parts.front().response() == nullptr)
        return reply(model_response(
          content("model", {part(function_call("", "draw", json::object()))})));
      asked = to_json(last);
      reply(model_response(text("done")));
    });
  const auto draw = tool_of("draw", [](const json&, tool_context& context) {
    context.attach(inline_data("\1\2\3", "image/png"));
    return json("drawn");
  });
  BOOST_TEST(on.perform(asks("a", draws, {draw})) == "a= a= a=done | ok");
  const auto expected = R"([{"functionResponse": {"name": "draw",
    "response": {"result": "drawn"}, "parts": [
      {"inlineData": {"mimeType": "image/png", "data": "AQID"}}]}}])"_json;
  const auto without_id = [](json parts) {
    parts[0]["functionResponse"].erase("id");
    return to_text(parts);
  };
  BOOST_TEST(without_id(asked["parts"]) == to_text(expected));
  const auto stored = on.events(on.key);
  BOOST_TEST(without_id(to_json(stored[stored.size() - 2]->content)["parts"])
             == to_text(expected));
}

BOOST_AUTO_TEST_CASE(only_media_of_a_tool_that_succeeds_are_attached) {
  agent_fixture on;
  const auto wrong = tool_of("wrong", [](const json&, tool_context& context) {
    context.attach(part("words"));
    return json(1);
  });
  const auto fails
    = tool_of("fails", [](const json&, tool_context& context) -> json {
        context.attach(inline_data("x", "image/png"));
        throw std::runtime_error("broken");
      });
  const auto untyped
    = tool_of("untyped", [](const json&, tool_context& context) {
        context.attach(inline_data("x", ""));
        return json(1);
      });
  on.perform(calls({calling("wrong"), calling("fails"), calling("untyped")},
                   {wrong, fails, untyped}));
  const auto told = to_text(responses(on, on.key));
  const std::string why
    = "attach() takes inline data or file data with a MIME type";
  BOOST_TEST(told.find(why) != told.rfind(why), told);
  for (const auto& said : on.events(on.key))
    for (const auto& each : said->content.parts)
      if (const auto* answer = each.response())
        BOOST_TEST(attached_parts(*answer).empty());
}

BOOST_AUTO_TEST_CASE(a_failure_ends_the_run_when_told_to) {
  agent_fixture on;
  const tool strict({.name = "strict",
                     .run = [](const json&, tool_context& context) -> json {
                       context.state().set("ghost", 1);
                       throw std::runtime_error("broken");
                     },
                     .on_failure = tool_failure::end_run});
  BOOST_TEST(on.perform(calls({calling("strict")}, {strict}))
             == "a= | tool_failed");
  BOOST_TEST(agent_fixture::last_reason().find("broken") != std::string::npos);
  BOOST_TEST(on.state_now() == json::object());
}

// -- coroutines ----

BOOST_AUTO_TEST_CASE(a_coroutine_tool_waits_without_a_thread) {
  runtime_options one;
  one.tool_threads = 1;
  agent_fixture on(std::move(one));
  constexpr std::size_t count = 50;

  // Each call waits until all of them have arrived.
  struct meeting {
    std::mutex mutex;
    std::vector<std::coroutine_handle<>> waiting;
  };

  const auto met = std::make_shared<meeting>();

  struct arrival {
    std::shared_ptr<meeting> at;

    explicit arrival(std::shared_ptr<meeting> where) : at(std::move(where)) {}

    bool await_ready() const { return false; }

    void await_suspend(std::coroutine_handle<> self) const {
      std::vector<std::coroutine_handle<>> all;
      {
        const std::lock_guard guard(at->mutex);
        at->waiting.push_back(self);
        if (at->waiting.size() == count)
          all = std::exchange(at->waiting, {});
      }
      for (const auto& each : all)
        each.resume();
    }

    void await_resume() const {}
  };

  const tool meets(
    {.name = "meets",
     .run = [met](const json& args, tool_context& context) -> task<json> {
       co_await arrival(met);
       context.state().append("order", args.at("index"));
       co_return args.at("index");
     }});
  BOOST_TEST(on.perform(calls({calling_many("meets", count)}, {meets}))
             == "a= a= a=done | ok");
  // The responses are in one event, in the order of the calls; no concurrent
  // one is lost.
  const auto told = responses(on, on.key);
  const auto order = on.state_now()["order"];
  BOOST_TEST(told.size() == count);
  BOOST_TEST(order.size() == count);
  for (std::size_t index = 0; index < count; ++index) {
    BOOST_TEST(told[index] == json({{"result", index}}));
    BOOST_TEST(order[index] == index);
  }
}

BOOST_AUTO_TEST_CASE(a_coroutine_tool_that_throws_is_an_error_result) {
  agent_fixture on;
  const tool throws(
    {.name = "throws", .run = [](const json&, tool_context&) -> task<json> {
       throw std::runtime_error("broken");
       co_return json();
     }});
  BOOST_TEST(on.perform(calls({calling("throws")}, {throws}))
             == "a= a= a=done | ok");
  const auto told = responses(on, on.key)[0].value("error", "");
  BOOST_TEST(told.find("broken") != std::string::npos, told);
}

// -- limits ----

BOOST_AUTO_TEST_CASE(a_tool_that_takes_too_long_is_told_to_the_model) {
  const auto time = std::make_shared<watched_environment>(1);
  agent_fixture on(runtime_fixture::in(time));
  const auto release = std::make_shared<std::latch>(1);
  const auto started = std::make_shared<tally>();
  const auto stopped = std::make_shared<tally>();
  const tool slow({.name = "slow",
                   .run = [=](const json&, tool_context& context) -> json {
                     context.state().set("ghost", 1);
                     const std::stop_callback told(context.stop(),
                                                   [&] { stopped->add(); });
                     started->add();
                     release->wait();
                     return "late";
                   },
                   .timeout = 50ms});
  auto run = on.runtime.run(calls({calling("slow")}, {slow}), on.key, "go");
  started->await(1);
  time->advance(50ms);
  BOOST_TEST(agent_fixture::show(std::move(run)) == "a= a= a=done | ok");
  const auto told = responses(on, on.key)[0].value("error", "");
  BOOST_TEST(told.find("50 ms") != std::string::npos, told);
  stopped->await(1);
  release->count_down();
  on.runtime.shut_down().value();
}

// A suspended coroutine holds no thread, so giving it up frees none.
BOOST_AUTO_TEST_CASE(a_coroutine_that_is_given_up_allows_no_further_thread) {
  const auto time = std::make_shared<watched_environment>(1);
  auto options = runtime_fixture::in(time);
  options.tool_threads = 1;
  agent_fixture on(std::move(options));

  struct hold {
    std::coroutine_handle<>* held;
    tally* suspended;

    bool await_ready() const { return false; }

    void await_suspend(std::coroutine_handle<> self) const {
      *held = self;
      suspended->add();
    }

    void await_resume() const {}
  };

  std::coroutine_handle<> held;
  tally suspended;
  tally ended;
  const tool waits({.name = "waits",
                    .run = [&](const json&, tool_context&) -> task<json> {
                      const hold here{&held, &suspended};
                      co_await here;
                      ended.add();
                      co_return 1;
                    },
                    .timeout = 50ms});
  auto run = on.runtime.run(calls({calling("waits")}, {waits}), on.key, "go");
  suspended.await(1);
  time->advance(50ms);
  BOOST_TEST(agent_fixture::show(std::move(run)) == "a= a= a=done | ok");

  tally working;
  std::atomic<int> inside = 0;
  std::atomic<bool> both = false;
  const tool blocks(
    {.name = "blocks", .run = [&](const json&, tool_context&) -> json {
       if (++inside > 1)
         both = true;
       working.add();
       working.reaches(2, 200ms);
       --inside;
       return 1;
     }});
  const auto two = calls({calling_many("blocks", 2)}, {blocks});
  BOOST_TEST(on.perform(two) == "a= a= a=done | ok");
  BOOST_TEST(!both);
  held.resume();
  ended.await(1);
}

BOOST_AUTO_TEST_CASE(a_tool_in_time_is_not_disturbed_by_its_timeout) {
  const auto time = std::make_shared<watched_environment>(1);
  agent_fixture on(runtime_fixture::in(time));
  const tool quick({.name = "quick",
                    .run = [](const json&, tool_context&) -> json { return 1; },
                    .timeout = 50ms});
  BOOST_TEST(on.perform(calls({calling("quick")}, {quick}))
             == "a= a= a=done | ok");
  time->advance(1h);
  BOOST_TEST(responses(on, on.key) == json({{{"result", 1}}}));
}

BOOST_AUTO_TEST_CASE(calls_beyond_the_limit_of_a_tool_wait_in_order) {
  runtime_options many;
  many.tool_threads = 8;
  agent_fixture on(std::move(many));

  struct seen {
    std::mutex mutex;
    int inside = 0;
    int most = 0;
    std::vector<int> order;
  };

  const auto watch = std::make_shared<seen>();
  const tool narrow({.name = "narrow",
                     .run = [watch](const json& args, tool_context&) -> json {
                       {
                         const std::lock_guard guard(watch->mutex);
                         watch->most = std::max(watch->most, ++watch->inside);
                         watch->order.push_back(args.at("index").get<int>());
                       }
                       std::this_thread::yield();
                       const std::lock_guard guard(watch->mutex);
                       --watch->inside;
                       return 1;
                     },
                     .calls_max = 1});
  on.perform(calls({calling_many("narrow", 40)}, {narrow}));
  BOOST_TEST(watch->most == 1);
  BOOST_TEST(watch->order.size() == 40U);
  BOOST_TEST(std::ranges::is_sorted(watch->order));
}

BOOST_AUTO_TEST_CASE(a_cancelled_run_gives_its_places_at_a_tool_back) {
  const auto started = std::make_shared<tally>();
  const tool narrow(
    {.name = "narrow",
     .run = [started](const json&, tool_context& context) -> json {
       started->add();
       std::latch stopped(1);
       const std::stop_callback told(context.stop(),
                                     [&] { stopped.count_down(); });
       if (context.state().contains("quick"))
         return 1;
       stopped.wait();
       return 0;
     },
     .calls_max = 1});
  agent_fixture on;
  auto run = on.runtime.run(
    calls({calling_many("narrow", 5)}, {narrow}), on.key, "go");
  started->await(1);
  run.cancel();
  BOOST_TEST(agent_fixture::show(std::move(run)) == "a= | cancelled");
  BOOST_TEST(on.append(on.key, {{"quick", true}}) == "ok");
  BOOST_TEST(on.perform(calls({calling("narrow")}, {narrow}))
             == "a= a= a=done | ok");
}

BOOST_AUTO_TEST_SUITE_END()
