// Shutting down while calls and runs are under way: it ends, every call is
// answered once, and every acknowledged event took effect.

#include "troupe/runtime/runtime.hpp"

#include "../random.hpp"
#include "agent_fixture.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <atomic>
#include <future>
#include <latch>
#include <thread>

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(shutdown, *boost::unit_test::timeout(150))

namespace {

// Returns the codes of all calls after the end.
std::vector<std::string> codes_after(agent_fixture& on) {
  auto& sessions = on.sessions();
  return {code_of(sessions.create({"press", "ann"}).get()),
          code_of(sessions.create({"new", "ann"}).get()),
          code_of(sessions.get(on.key).get()),
          code_of(sessions.list({"press"}).get()),
          code_of(sessions.append_event(on.key, change({{"k", 1}})).get()),
          code_of(sessions.remove(on.key).get()),
          code_of(sessions.remove_user("press", "ann").get()),
          code_of(sessions.user_state("press", "ann").get()),
          code_of(sessions.app_state("press").get()),
          code_of(sessions.state(on.key).set("k", 1).get()),
          code_of(sessions.state(on.key).snapshot().get())};
}

} // namespace

BOOST_AUTO_TEST_CASE(after_the_end_every_call_is_cancelled) {
  agent_fixture on;
  on.append(on.key, {{"k", 1}});
  on.runtime.shut_down().value();
  on.runtime.shut_down().value();
  const auto codes = codes_after(on);
  BOOST_TEST(codes == std::vector<std::string>(codes.size(), "cancelled"),
             boost::test_tools::per_element());
  BOOST_TEST(on.perform(says("a", "1")) == "| cancelled");
}

BOOST_AUTO_TEST_CASE(the_end_does_not_wait_for_threads_that_have_called) {
  std::optional<agent_fixture> on(std::in_place);
  std::promise<void> called;
  std::promise<void> ended;
  std::thread caller([&] {
    on->open("other");
    on->perform(says("a", "1"));
    called.set_value();
    ended.get_future().wait();
  });
  called.get_future().wait();
  on.reset();
  ended.set_value();
  caller.join();
}

BOOST_AUTO_TEST_CASE(a_run_that_outlives_its_runtime_can_still_be_read) {
  std::optional<run> kept;
  std::optional<run> cut;
  {
    agent_fixture on;
    kept = on.runtime.run(
      sequential("all", {says("a", "1"), says("b", "2")}), on.key, "go");
    answers<void> ended;
    kept->wait().then(ended.next());
    ended.await();
    const auto model = std::make_shared<held_model>();
    cut = on.runtime.run(llm({.name = "c", .model = model}), on.key, "go");
    model->asked.await(1);
  }
  answers<event_ptr> first;
  kept->next().then(first.next());
  BOOST_TEST(first.await().front().value()->text() == "1");
  BOOST_TEST(agent_fixture::show(std::move(*kept)) == "b=2 | ok");
  answers<void> end;
  cut->wait().then(end.next());
  BOOST_TEST(code_of(end.await().front()) == "cancelled");
  cut->cancel();
  BOOST_TEST(agent_fixture::show(std::move(*cut)) == "| cancelled");
}

BOOST_AUTO_TEST_CASE(a_completion_may_ask_for_the_next_event_at_any_time) {
  for (const bool late : {false, true}) {
    auto on = std::make_unique<agent_fixture>();
    const auto root
      = loop({.name = "many", .max_iterations = 2'000}, {says("a", "1")});
    auto run = on->runtime.run(root, on->key, "go");
    BOOST_TEST(code_of(run.wait().get()) == "ok");
    std::atomic<int> seen = 0;
    tally end;
    std::function<void()> pump = [&] {
      run.next().then([&](const result<event_ptr>& said) {
        if (!said.value())
          return end.add();
        ++seen;
        pump();
      });
    };
    if (late)
      on.reset();
    pump();
    on.reset();
    end.await(1);
    BOOST_TEST(seen == 2'000);
  }
}

BOOST_AUTO_TEST_CASE(a_run_started_after_the_end_tells_its_completions) {
  agent_fixture on;
  on.runtime.shut_down().value();
  auto late = on.runtime.run(says("a", "1"), on.key, "go");
  answers<void> end;
  late.wait().then(end.next());
  BOOST_TEST(code_of(end.await().front()) == "cancelled");
}

BOOST_DATA_TEST_CASE(calls_under_way_are_answered_once,
                     data::xrange(1U, 41U),
                     seed) {
  random_source random(seed);
  constexpr std::size_t writers = 4;
  std::vector<answers<event_ptr>> appended(writers);
  std::vector<answers<session>> read(writers);
  std::vector<answers<session>> created(writers);
  std::vector<answers<bool>> removed(writers);
  std::vector<answers<session_page>> listed(writers);
  std::atomic<std::size_t> calls = 0;
  std::atomic<bool> enough = false;
  {
    runtime_fixture on;
    const auto keys = on.open_many({.sessions = 4, .users = 2});
    const auto until = random.below(3'000);
    std::vector<std::thread> threads;
    for (std::size_t index = 0; index < writers; ++index)
      threads.emplace_back([&, index] {
        for (int count = 0; !enough || count < 50; ++count) {
          const auto& key
            = keys[(index + static_cast<std::size_t>(count)) % keys.size()];
          on.sessions()
            .append_event(key,
                          operate({operation_on("n", "add", 1),
                                   operation_on("app:n", "add", 1)}))
            .then(appended[index].next());
          const auto extra
            = std::to_string(index) + "-" + std::to_string(count);
          if (count % 5 == 0)
            on.sessions().get(key).then(read[index].next());
          if (count % 11 == 0)
            on.sessions()
              .create({"press", "extra", extra}, {{"app:x", 1}})
              .then(created[index].next());
          if (count % 13 == 0)
            on.sessions()
              .remove({"press", "extra", extra})
              .then(removed[index].next());
          if (count % 29 == 0)
            on.sessions()
              .remove_user("press", "extra")
              .then(removed[index].next());
          if (count % 17 == 0)
            on.sessions().list({"press"}).then(listed[index].next());
          ++calls;
        }
      });
    while (calls < until)
      std::this_thread::yield();
    on.runtime.shut_down().value();
    enough = true;
    for (auto& each : threads)
      each.join();
  }
  // Every call was answered before the runtime was destroyed.
  std::vector<int> numbers;
  for (std::size_t index = 0; index < writers; ++index) {
    for (const auto& each : appended[index].taken()) {
      BOOST_TEST((each || each.error().code() == errc::cancelled));
      if (each)
        numbers.push_back(
          (*each)->actions.state_delta.to_json()["app:n"].get<int>());
    }
    for (const auto& each : read[index].taken())
      BOOST_TEST((each || each.error().code() == errc::cancelled));
    for (const auto& each : created[index].taken())
      BOOST_TEST((each || each.error().code() == errc::cancelled));
    for (const auto& each : removed[index].taken())
      BOOST_TEST((each || each.error().code() == errc::cancelled));
    for (const auto& each : listed[index].taken())
      BOOST_TEST((each || each.error().code() == errc::cancelled));
  }
  // Every number from one on was acknowledged to exactly one caller. So no
  // event took effect without an answer, and no answered event is missing.
  std::ranges::sort(numbers);
  for (std::size_t index = 0; index < numbers.size(); ++index)
    BOOST_TEST(numbers[index] == static_cast<int>(index) + 1);
}

BOOST_DATA_TEST_CASE(runs_under_way_are_cancelled_and_awaited,
                     data::xrange(1U, 41U),
                     seed) {
  random_source random(seed);
  std::atomic<int> inside = 0;
  std::atomic<std::size_t> steps = 0;
  std::vector<run> runs;
  answers<void> ended;
  {
    agent_fixture on;
    const auto busy = [&](const std::string& name) {
      return custom(name, [&](invocation_context& context) -> agent_run {
        for (;;) {
          ++steps;
          co_await context.emit(text("x"));
          co_await context.sleep(std::chrono::microseconds(100));
        }
      });
    };
    const auto tool
      = tool_of("count", [&](const json&, tool_context& context) -> json {
          ++inside;
          ++steps;
          context.state().add("app:n", 1);
          --inside;
          return 1;
        });
    const auto model = scripted({{"asker", {calling("count")}}});
    const auto root
      = parallel("all",
                 {busy("one"),
                  busy("two"),
                  llm({.name = "asker", .model = model, .tools = {tool}})});
    const std::vector<session_key> keys{
      on.key, on.open("a"), on.open("b"), on.open("c")};
    const auto until = random.below(400);
    for (std::size_t count = 0; count < 6;
         ++count) { // Two runs wait for their turn.
      runs.push_back(on.runtime.run(root, keys[count % keys.size()], "go"));
      runs.back().wait().then(ended.next());
    }
    while (steps < until)
      std::this_thread::yield();
    on.runtime.shut_down().value();
  }
  // No part of a run continues after its end.
  const auto after = steps.load();
  for (const auto& each : ended.taken())
    BOOST_TEST(code_of(each) == "cancelled");
  for (auto& each : runs)
    BOOST_TEST(agent_fixture::show(std::move(each)).ends_with("| cancelled"));
  BOOST_TEST(inside == 0);
  BOOST_TEST(steps == after);
}

BOOST_AUTO_TEST_SUITE_END()
