// Shutting down while everything is under way: it ends, everybody is answered
// once, and what was acknowledged did happen.

#include "troupe/runtime/runtime.hpp"

#include "../random.hpp"
#include "play.hpp"
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

namespace {

// What every call says after the end.
std::vector<std::string> codes_after(play& on) {
  auto& sessions = on.sessions();
  return {code_of(sessions.create({.app = "press", .user = "ann"})),
          code_of(sessions.create({.app = "new", .user = "ann"})),
          code_of(sessions.get(on.key)),
          code_of(sessions.list({.app = "press"})),
          code_of(sessions.append_event(on.key, change({{"k", 1}}))),
          code_of(sessions.remove(on.key)),
          code_of(sessions.remove_user("press", "ann")),
          code_of(sessions.get_user_state("press", "ann")),
          code_of(sessions.get_app_state("press")),
          code_of(sessions.state(on.key).set("k", 1)),
          code_of(sessions.state(on.key).snapshot())};
}

} // namespace

BOOST_AUTO_TEST_SUITE(shutdown, *boost::unit_test::timeout(150))

BOOST_AUTO_TEST_CASE(after_the_end_every_call_is_cancelled) {
  play on;
  on.append(on.key, {{"k", 1}});
  on.runtime.shut_down().value();
  on.runtime.shut_down().value();
  const auto codes = codes_after(on);
  BOOST_TEST(codes == std::vector<std::string>(codes.size(), "cancelled"),
             boost::test_tools::per_element());
  BOOST_TEST(on.perform(says("a", "1")) == "| cancelled");
}

BOOST_AUTO_TEST_CASE(the_end_does_not_wait_for_threads_that_have_called) {
  std::optional<play> on(std::in_place);
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
    play on;
    kept = on.runtime.run(
      sequential("all", {says("a", "1"), says("b", "2")}), on.key, "go");
    answers<void> ended;
    kept->wait(ended.next());
    ended.await();
    const auto model = std::make_shared<held_model>();
    cut = on.runtime.run(llm({.name = "c", .model = model}), on.key, "go");
    model->asked.await(1);
  }
  answers<event_ptr> first;
  kept->next(first.next());
  BOOST_TEST(first.await().front().value()->text() == "1");
  BOOST_TEST(play::show(std::move(*kept)) == "b=2 | ok");
  answers<void> end;
  cut->wait(end.next());
  BOOST_TEST(code_of(end.await().front()) == "cancelled");
  cut->cancel();
  BOOST_TEST(play::show(std::move(*cut)) == "| cancelled");
}

BOOST_AUTO_TEST_CASE(a_completion_may_ask_for_the_next_event_at_any_time) {
  for (const bool late : {false, true}) {
    auto on = std::make_unique<play>();
    const auto root
      = loop({.name = "many", .max_iterations = 2'000}, {says("a", "1")});
    auto run = on->runtime.run(root, on->key, "go");
    BOOST_TEST(code_of(run.wait()) == "ok");
    std::atomic<int> seen = 0;
    tally end;
    std::function<void()> pump = [&] {
      run.next([&](const result<event_ptr>& said) {
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
  play on;
  on.runtime.shut_down().value();
  auto late = on.runtime.run(says("a", "1"), on.key, "go");
  answers<void> end;
  late.wait(end.next());
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
    stage on;
    const auto keys = on.open_many({.sessions = 4, .users = 2});
    const auto until = random.below(3'000);
    std::vector<std::thread> threads;
    for (std::size_t index = 0; index < writers; ++index)
      threads.emplace_back([&, index] {
        for (int count = 0; !enough || count < 50; ++count) {
          const auto& key
            = keys[(index + static_cast<std::size_t>(count)) % keys.size()];
          on.sessions().append_event(key,
                                     operate({operation_on("n", "add", 1),
                                              operation_on("app:n", "add", 1)}),
                                     {},
                                     appended[index].next());
          const auto extra
            = std::to_string(index) + "-" + std::to_string(count);
          if (count % 5 == 0)
            on.sessions().get(key, {}, read[index].next());
          if (count % 11 == 0)
            on.sessions().create({.app = "press",
                                  .user = "extra",
                                  .id = extra,
                                  .state = {{"app:x", 1}}},
                                 created[index].next());
          if (count % 13 == 0)
            on.sessions().remove({"press", "extra", extra},
                                 removed[index].next());
          if (count % 29 == 0)
            on.sessions().remove_user("press", "extra", removed[index].next());
          if (count % 17 == 0)
            on.sessions().list({.app = "press"}, listed[index].next());
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
  // Everybody was answered by the time the runtime had gone.
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
  // Every number from one on was acknowledged to exactly one caller: nothing
  // took effect without an answer, and nothing was answered without effect.
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
    play on;
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
         ++count) { // Two wait for their turn.
      runs.push_back(on.runtime.run(root, keys[count % keys.size()], "go"));
      runs.back().wait(ended.next());
    }
    while (steps < until)
      std::this_thread::yield();
    on.runtime.shut_down().value();
  }
  // Nothing of a run goes on behind its end.
  const auto after = steps.load();
  for (const auto& each : ended.taken())
    BOOST_TEST(code_of(each) == "cancelled");
  for (auto& each : runs)
    BOOST_TEST(play::show(std::move(each)).ends_with("| cancelled"));
  BOOST_TEST(inside == 0);
  BOOST_TEST(steps == after);
}

BOOST_AUTO_TEST_SUITE_END()
