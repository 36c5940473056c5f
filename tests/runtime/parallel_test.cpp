// Parallel lanes that fail, time out or have a `temp:` scope of their own; one
// agent over a list.

#include "agent_fixture.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(lanes)

namespace {

/// An agent that waits until its run is ended.
agent waits(const std::string& name, const std::shared_ptr<tally>& ended) {
  return custom(name, [ended](invocation_context& context) -> agent_run {
    try {
      co_await context.sleep(24h);
    } catch (const error&) {
      ended->add();
      throw;
    }
  });
}

agent sleeps_for(const std::string& name, std::chrono::milliseconds time) {
  return custom(name, [time](invocation_context& context) -> agent_run {
    co_await context.sleep(time);
    co_await context.emit(text("awake"));
  });
}

/// The failures in a session's events: `name: code; `.
std::string failures(runtime_fixture& on, const session_key& key) {
  std::string all;
  for (const auto& said : on.events(key))
    if (const auto code = said->field("errorCode"); !code.empty())
      all += said->author + ": " + code + "; ";
  return all;
}

/// An agent that says its item, or fails if the item is null.
agent works_on_items() {
  return custom("worker", [](invocation_context& context) -> agent_run {
    const auto item = context.state().find("temp:item")->data();
    if (item.is_null())
      throw error(errc::tool_failed, "nothing to do");
    co_await context.emit(text("did {}", to_text(item)));
  });
}

} // namespace

// -- failures ----

BOOST_AUTO_TEST_CASE(collect_lets_the_other_lanes_finish) {
  agent_fixture on;
  const auto root = parallel(
    {.name = "p", .lanes_max = 1, .on_failure = lane_failures::collect},
    {fails("bad"), says("good", "1"), fails("worse")});
  BOOST_TEST(on.perform(root) == "good=1 bad= worse= | ok");
  BOOST_TEST(failures(on, on.key)
             == "bad: callback_failed; worse: callback_failed; ");
  BOOST_TEST(on.events(on.key).back()->branch == "p.worse");
}

BOOST_AUTO_TEST_CASE(a_quorum_ends_the_rest_as_soon_as_it_is_reached) {
  agent_fixture on;
  const auto ended = std::make_shared<tally>();
  const auto root = parallel(
    {.name = "p", .on_failure = lane_failures::quorum, .quorum = 2},
    {waits("w", ended), says("a", "1"), fails("bad"), says("b", "2")});
  const auto line = on.perform(root);
  BOOST_TEST(line.ends_with("bad= | ok"), line);
  BOOST_TEST(line.find("a=1") != std::string::npos);
  BOOST_TEST(line.find("b=2") != std::string::npos);
  BOOST_TEST(ended->count() == 1U);
  // A cancelled lane has not failed.
  BOOST_TEST(failures(on, on.key) == "bad: callback_failed; ");
}

BOOST_AUTO_TEST_CASE(a_quorum_that_cannot_be_reached_ends_at_once) {
  agent_fixture on;
  const auto ended = std::make_shared<tally>();
  const auto root
    = parallel({.name = "p", .on_failure = lane_failures::quorum, .quorum = 2},
               {waits("w", ended), fails("one"), fails("two")});
  BOOST_TEST(on.perform(root) == "| callback_failed");
  BOOST_TEST(agent_fixture::last_reason().find("lane 'one'")
             != std::string::npos);
  BOOST_TEST(agent_fixture::last_reason().find("lane 'two'")
             != std::string::npos);
  BOOST_TEST(agent_fixture::last_reason().find("lane 'w'")
             == std::string::npos);
  BOOST_TEST(ended->count() == 1U);
}

BOOST_DATA_TEST_CASE(a_quorum_out_of_reach_is_refused, data::make({0, 3}), k) {
  BOOST_TEST(
    code_thrown_by([k = static_cast<std::size_t>(k)] {
      parallel({.name = "p", .on_failure = lane_failures::quorum, .quorum = k},
               {says("a", "1"), says("b", "1")});
    })
    == "invalid_argument");
}

BOOST_AUTO_TEST_CASE(a_quorum_without_its_policy_is_refused) {
  BOOST_TEST(code_thrown_by(
               [] { parallel({.name = "p", .quorum = 1}, {says("a", "1")}); })
             == "invalid_argument");
}

BOOST_AUTO_TEST_CASE(a_cancelled_run_ends_whatever_the_policy) {
  for (const auto policy : {lane_failures::fail_fast, lane_failures::collect}) {
    agent_fixture on;
    const auto ended = std::make_shared<tally>();
    const auto root
      = parallel({.name = "p", .on_failure = policy},
                 {waits("w1", ended), says("a", "1"), waits("w2", ended)});
    auto run = on.runtime.run(root, on.key, "go");
    BOOST_TEST((*run.next().value()).text() == "1");
    run.cancel();
    BOOST_TEST(agent_fixture::show(std::move(run)) == "| cancelled");
    BOOST_TEST(ended->count() == 2U);
  }
}

// -- time ----

BOOST_AUTO_TEST_CASE(a_lane_that_takes_too_long_has_failed) {
  const auto time = std::make_shared<watched_environment>(1);
  agent_fixture on(runtime_fixture::in(time));
  const auto root = parallel(
    {.name = "p", .on_failure = lane_failures::collect, .lane_timeout = 100ms},
    {sleeps_for("slow", 1h), sleeps_for("quick", 50ms)});
  auto run = on.runtime.run(root, on.key, "go");
  time->timers.await(4);
  time->advance(50ms);
  BOOST_TEST((*run.next().value()).author == "quick");
  time->advance(50ms);
  BOOST_TEST(agent_fixture::show(std::move(run)) == "slow= | ok");
  BOOST_TEST(failures(on, on.key) == "slow: deadline_exceeded; ");
  BOOST_TEST(on.events(on.key).back()->field("errorMessage").find("100 ms")
             != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_timer_of_a_fan_out_that_is_over_disturbs_nobody) {
  const auto time = std::make_shared<watched_environment>(1);
  agent_fixture on(runtime_fixture::in(time));
  const auto root = sequential(
    "s",
    {parallel({.name = "p", .lane_timeout = 100ms}, {says("a", "1")}),
     parallel("q", {sleeps_for("b", 1h)})});
  auto run = on.runtime.run(root, on.key, "go");
  time->timers.await(2);
  time->advance(100ms);
  time->advance(1h);
  BOOST_TEST(agent_fixture::show(std::move(run)) == "a=1 b=awake | ok");
}

// -- temp ----

BOOST_AUTO_TEST_CASE(isolated_lanes_have_temp_of_their_own) {
  agent_fixture on;
  const auto root = sequential(
    "s",
    {adds("start", "temp:n"),
     parallel({.name = "p", .lanes_max = 1, .isolate_temp = true},
              {sequential("left", {adds("l1", "temp:n"), adds("l2", "temp:n")}),
               adds("right", "temp:n")}),
     tells("end", "temp:n")});
  BOOST_TEST(on.perform(root) == "start=1 l1=2 l2=3 right=2 end=1 | ok");
}

BOOST_AUTO_TEST_CASE(lanes_share_temp_unless_isolated) {
  agent_fixture on;
  const auto root
    = sequential("s",
                 {parallel({.name = "p", .lanes_max = 1},
                           {adds("left", "temp:n"), adds("right", "temp:n")}),
                  tells("end", "temp:n")});
  BOOST_TEST(on.perform(root) == "left=1 right=2 end=2 | ok");
}

BOOST_AUTO_TEST_CASE(operations_of_isolated_lanes_on_other_scopes_all_count) {
  agent_fixture on;
  std::vector<agent> adders;
  for (int index = 0; index < 50; ++index)
    adders.push_back(custom("a" + std::to_string(index),
                            [](invocation_context& context) -> agent_run {
                              context.state().add("n", 1);
                              context.state().add("temp:n", 1);
                              co_await context.emit(text("x"));
                            }));
  on.perform(parallel({.name = "p", .isolate_temp = true}, adders));
  BOOST_TEST(on.state_now() == json({{"n", 50}}));
}

// -- one agent over a list ----

BOOST_AUTO_TEST_CASE(results_of_a_map_are_in_the_order_of_the_elements) {
  agent_fixture on;
  BOOST_TEST(on.append(on.key, {{"list", {3, "two", {{"k", 1}}}}}) == "ok");
  on.perform(map({.name = "m", .items_key = "list", .output_key = "done"},
                 works_on_items()));
  BOOST_TEST(on.state_now()["done"]
             == json({"did 3", R"(did "two")", R"(did {"k":1})"}));
}

BOOST_AUTO_TEST_CASE(a_result_may_be_any_value) {
  agent_fixture on;
  BOOST_TEST(on.append(on.key, {{"list", {1, 2, 3}}}) == "ok");
  const auto squares
    = custom("square", [](invocation_context& context) -> agent_run {
        const auto item = context.state().get<int>("temp:item");
        const auto index = context.state().get<int>("temp:index");
        json made{{"square", item * item}, {"index", index}};
        context.state().set("temp:result", std::move(made));
        co_await context.emit(text("done"));
      });
  on.perform(map(
    {.name = "m", .items_key = "list", .output_key = "user:squares"}, squares));
  const auto made = on.state_now()["user:squares"];
  BOOST_TEST(made[0] == json({{"square", 1}, {"index", 0}}));
  BOOST_TEST(made[2] == json({{"square", 9}, {"index", 2}}));
}

BOOST_AUTO_TEST_CASE(failed_elements_are_null_when_collected) {
  agent_fixture on;
  BOOST_TEST(on.append(on.key, {{"list", {1, nullptr, 3}}}) == "ok");
  const map_options collecting{.name = "m",
                               .items_key = "list",
                               .output_key = "done",
                               .on_failure = lane_failures::collect};
  on.perform(map(collecting, works_on_items()));
  BOOST_TEST(on.state_now()["done"] == json({"did 1", nullptr, "did 3"}));
  BOOST_TEST(failures(on, on.key) == "worker: tool_failed; ");
  BOOST_TEST(
    on.perform(map({.name = "m", .items_key = "list"}, works_on_items()))
      .ends_with("| tool_failed"));
}

BOOST_AUTO_TEST_CASE(an_empty_list_gives_an_empty_result) {
  agent_fixture on;
  BOOST_TEST(
    on.perform(map({.name = "m", .items_key = "none", .output_key = "done"},
                   works_on_items()))
    == "m= | ok");
  BOOST_TEST(on.state_now()["done"] == json::array());
}

BOOST_AUTO_TEST_CASE(what_is_no_list_is_a_type_error) {
  agent_fixture on;
  BOOST_TEST(on.append(on.key, {{"list", 5}}) == "ok");
  BOOST_TEST(
    on.perform(map({.name = "m", .items_key = "list"}, works_on_items()))
    == "| type_error");
}

BOOST_AUTO_TEST_CASE(a_map_keeps_to_its_lanes) {
  agent_fixture on;
  std::vector<int> numbers(200);
  BOOST_TEST(on.append(on.key, {{"list", numbers}}) == "ok");
  const auto inside = std::make_shared<std::atomic<int>>(0);
  const auto most = std::make_shared<std::atomic<int>>(0);
  const auto counts
    = custom("count", [=](invocation_context& context) -> agent_run {
        const auto now = ++*inside;
        for (auto seen = most->load(); seen < now;)
          if (most->compare_exchange_weak(seen, now))
            break;
        co_await context.emit(text("in"));
        --*inside;
      });
  const auto line = on.perform(
    map({.name = "m", .items_key = "list", .lanes_max = 4}, counts));
  BOOST_TEST(line.ends_with("| ok"));
  BOOST_TEST(most->load() <= 4);
  BOOST_TEST(most->load() > 1);
}

BOOST_AUTO_TEST_SUITE_END()
