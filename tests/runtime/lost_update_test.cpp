// Lost updates of concurrent steps.

#include "troupe/agents/agent_tool.hpp"
#include "troupe/runtime/runtime.hpp"

#include "staged_store.hpp"
#include "warned_fixture.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <coroutine>
#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(lost_updates_of_runs, *boost::unit_test::timeout(240))

namespace {

// Suspends coroutines until a number of them has arrived.
class meeting {
public:
  explicit meeting(std::size_t count) : count_(count) {}

  // Suspends until all have arrived.
  auto arrive() {
    struct awaiter {
      bool await_ready() const noexcept { return false; }

      void await_suspend(std::coroutine_handle<> waiting) const {
        all.add(waiting);
      }

      void await_resume() const noexcept {}

      meeting& all;
    };

    return awaiter{*this};
  }

private:
  void add(std::coroutine_handle<> waiting) {
    const std::lock_guard guard(mutex_);
    waiting_.emplace_back(executor::current(), waiting);
    if (waiting_.size() == count_)
      for (const auto& [lane, each] : waiting_)
        lane->post(each);
  }

  const std::size_t count_;
  std::mutex mutex_;
  std::vector<std::pair<executor*, std::coroutine_handle<>>> waiting_;
};

// Reads the number, waits until all others have read it, and sets the next.
body reads_and_sets(const std::string& key, meeting& all) {
  return [key, &all](invocation_context& context) -> agent_run {
    const auto now = context.state().get(key, 0);
    co_await all.arrive();
    context.state().set(key, now + 1);
    co_await context.emit(text("{}", "set"));
  };
}

} // namespace

BOOST_DATA_TEST_CASE(updates_that_are_lost_are_told,
                     data::make({"n", "user:n", "app:n", "temp:n"}),
                     key) {
  warned_fixture on;
  meeting all(lanes);
  const auto root = side_by_side(reads_and_sets(key, all));
  auto started = on.runtime.run(root, on.key, "go");
  BOOST_TEST(code_of(started.wait().get()) == "ok");
  // The first one overwrites nothing.
  BOOST_TEST(started.lost_updates_count() == lanes - 1);
  const auto told = started.lost_updates();
  BOOST_REQUIRE(told.size() == 1U);
  BOOST_TEST(told[0].key == key);
  BOOST_TEST(told[0].agent.find("lane") == 0U);
  BOOST_REQUIRE(on.warnings->size() == 1U);
  for (const auto& part : {std::string("'") + key + "'",
                           "'" + told[0].agent + "'",
                           told[0].event_id})
    BOOST_TEST(on.warnings->at(0).find(part) != std::string::npos);
  if (std::string(key) != "temp:n")
    BOOST_TEST(value_in(on, key) == 1);
}

BOOST_AUTO_TEST_CASE(a_loss_in_a_session_names_both_events) {
  warned_fixture on;
  meeting all(2);
  const auto root = side_by_side(reads_and_sets("n", all), 2);
  auto started = on.runtime.run(root, on.key, "go");
  started.wait().value();
  const auto lost = started.lost_updates().at(0);
  const auto events = on.events(on.key);
  BOOST_REQUIRE(events.size() == 3U);
  BOOST_TEST(lost.overwritten_id == events[1]->id);
  BOOST_TEST(lost.event_id == events[2]->id);
  BOOST_TEST(lost.agent == events[2]->author);
  BOOST_TEST(on.warnings->at(0).find(lost.overwritten_id) != std::string::npos);
}

BOOST_DATA_TEST_CASE(a_refused_set_throws_and_the_others_count,
                     data::make({"n", "user:n", "app:n", "temp:n"}),
                     key) {
  warned_fixture on;
  meeting all(lanes);
  std::atomic<std::size_t> refused = 0;
  std::atomic<bool> is_advised = true;
  const auto sets = reads_and_sets(key, all);
  const auto root = side_by_side([&](invocation_context& context) -> agent_run {
    try {
      co_await sets(context);
    } catch (const error& failure) {
      ++refused;
      is_advised = is_advised && failure.code() == errc::conflict
                   && failure.message().find(key) != std::string::npos
                   && failure.message().find("update(") != std::string::npos;
    }
  });
  BOOST_TEST(on.lost_in(root, {.lost_updates = lost_updates::refuse}) == 0U);
  BOOST_TEST(refused == lanes - 1);
  BOOST_TEST(is_advised.load());
  BOOST_TEST(on.warnings->empty());
}

BOOST_AUTO_TEST_CASE(a_refused_step_reads_again_and_counts) {
  warned_fixture on;
  meeting all(lanes);
  const auto root = side_by_side([&](invocation_context& context) -> agent_run {
    static_cast<void>(context.state().get("user:n", 0));
    co_await all.arrive();
    for (bool is_done = false; !is_done;) {
      context.state().set("user:n", context.state().get("user:n", 0) + 1);
      try {
        co_await context.emit(text("{}", "set"));
        is_done = true;
      } catch (const error& failure) {
        if (failure.code() != errc::conflict)
          throw;
      }
    }
  });
  BOOST_TEST(on.lost_in(root, {.lost_updates = lost_updates::refuse}) == 0U);
  BOOST_TEST(value_in(on, "user:n") == lanes);
}

BOOST_AUTO_TEST_CASE(a_run_may_ignore_losses) {
  warned_fixture on;
  meeting all(lanes);
  BOOST_TEST(on.lost_in(side_by_side(reads_and_sets("n", all)),
                        {.lost_updates = lost_updates::ignore})
             == 0U);
  BOOST_TEST(on.warnings->empty());
  BOOST_TEST(value_in(on, "n") == 1);
}

// -- no losses ----

BOOST_AUTO_TEST_CASE(writes_that_lose_nothing_are_not_told) {
  warned_fixture on;
  meeting all(lanes);
  const auto root = side_by_side([&](invocation_context& context) -> agent_run {
    auto& state = context.state();
    static_cast<void>(state.get("typed", 0));
    static_cast<void>(state.get("same", 0));
    co_await all.arrive();
    state.add("typed", 1);
    state.set("blind", context.agent_name());
    state.set("same", "the same");
    state.set(context.agent_name(), 0);
    co_await context.emit(text("{}", "once"));
    // Its own writes are no surprise.
    state.set(context.agent_name(), 1);
    state.set("blind", context.agent_name());
    co_await context.emit(text("{}", "twice"));
  });
  // The first "same" is a change that the others have not seen.
  BOOST_TEST(on.lost_in(root) == lanes - 1);
  BOOST_REQUIRE(on.warnings->size() == 1U);
  BOOST_TEST(on.warnings->at(0).find("'same'") != std::string::npos);
  BOOST_TEST(value_in(on, "typed") == lanes);
}

BOOST_AUTO_TEST_CASE(a_value_that_came_back_is_no_loss) {
  warned_fixture on;
  on.append(on.key, {{"n", json{1, 2}}});
  const std::vector<json> values{"other", json{1, 2}};
  const auto root = custom("a", [&](invocation_context& context) -> agent_run {
    static_cast<void>(context.state().get("n"));
    for (const auto& next : values) {
      auto set = on.sessions().state(on.key).set("n", next);
      (co_await std::move(set)).value();
    }
    context.state().set("n", 3);
    co_await context.emit(text("{}", "set"));
  });
  BOOST_TEST(on.lost_in(root) == 0U);
}

BOOST_AUTO_TEST_CASE(a_step_knows_what_it_has_written_and_no_more) {
  warned_fixture on;
  const auto root = custom("a", [&](invocation_context& context) -> agent_run {
    auto& state = context.state();
    state.set("n", state.get("n", 0) + 1);
    co_await context.emit(text("{}", "one"));
    state.set("n", 2);
    co_await context.emit(text("{}", "two"));
    // An event from outside changes the keys that the body has read.
    co_await context.run(
      custom("b", [](invocation_context& below) -> agent_run {
        below.state().set("n", 10);
        co_await below.emit(text("{}", "ten"));
      }));
    state.set("n", 3);
    co_await context.emit(text("{}", "three"));
    state.set("n", state.get("n", 0) + 1);
    co_await context.emit(text("{}", "four"));
  });
  auto started = on.runtime.run(root, on.key, "go");
  started.wait().value();
  BOOST_TEST(started.lost_updates_count() == 1U);
  const auto events = on.events(on.key);
  BOOST_TEST(started.lost_updates().at(0).overwritten_id == events[3]->id);
  BOOST_TEST(started.lost_updates().at(0).event_id == events[4]->id);
}

// -- tools ----

namespace {

scripted_reply calling_both() {
  scripted_reply both;
  both.function_calls
    = {{"", "one", json::object()}, {"", "two", json::object()}};
  return both;
}

// Two tools that count in one turn. With `in_order` the second one sees the
// number of the first.
agent two_counting_tools(bool in_order) {
  const auto read = std::make_shared<tally>();
  const auto count = [read, in_order](tool_context& context, bool is_second) {
    auto& state = context.state();
    while (in_order && is_second && state.get("n", 0) == 0)
      std::this_thread::yield();
    state.set("n", state.get("n", 0) + 1);
    read->add();
    if (!in_order)
      read->await(2);
    return json("done");
  };
  return asks("a",
              scripted({{"a", {calling_both(), {.text = "ok"}}}}),
              {tool_of("one",
                       [count](const json&, tool_context& context) {
                         return count(context, false);
                       }),
               tool_of("two", [count](const json&, tool_context& context) {
                 return count(context, true);
               })});
}

} // namespace

BOOST_AUTO_TEST_CASE(tools_of_a_turn_that_miss_each_other_lose_an_update) {
  warned_fixture on;
  auto started = on.runtime.run(two_counting_tools(false), on.key, "go");
  started.wait().value();
  BOOST_TEST(value_in(on, "n") == 1);
  BOOST_REQUIRE(started.lost_updates_count() == 1U);
  const auto lost = started.lost_updates().at(0);
  BOOST_TEST(lost.agent == "a");
  BOOST_TEST(lost.event_id == on.events(on.key)[2]->id);
  BOOST_TEST(lost.overwritten_id == lost.event_id);
  BOOST_TEST(on.show(on.runtime.run(two_counting_tools(false),
                                    on.key,
                                    "go",
                                    {.lost_updates = lost_updates::refuse}))
             == "a= | conflict");
}

BOOST_AUTO_TEST_CASE(a_tool_that_sees_an_earlier_one_loses_nothing) {
  warned_fixture on;
  BOOST_TEST(on.lost_in(two_counting_tools(true)) == 0U);
  BOOST_TEST(value_in(on, "n") == 2);
}

BOOST_AUTO_TEST_CASE(a_tool_overwrites_a_change_from_outside) {
  warned_fixture on;
  const auto set = tool_of("set", [&](const json&, tool_context& context) {
    const auto now = context.state().get("app:n", 0);
    on.append(on.open("other"), {{"app:n", 7}});
    context.state().set("app:n", now + 1);
    return json("done");
  });
  const auto root
    = asks("a", scripted({{"a", {calling("set"), {.text = "ok"}}}}), {set});
  BOOST_TEST(on.lost_in(root) == 1U);
}

BOOST_AUTO_TEST_CASE(an_agent_as_a_tool_overwrites_a_change_from_outside) {
  warned_fixture on;
  const auto inner
    = custom("inner", [&](invocation_context& context) -> agent_run {
        auto& state = context.state();
        const auto now = state.get("n", 0);
        auto set = on.sessions().state(on.key).set("n", 7);
        (co_await std::move(set)).value();
        state.set("n", now + 1);
        co_await context.emit(text("{}", "one"));
        state.set("n", state.get("n", 0) + 1);
        co_await context.emit(text("{}", "two"));
      });
  const auto root = asks(
    "a",
    scripted({{"a", {calling("inner", {{"request", "go"}}), {.text = "ok"}}}}),
    {agent_tool(inner)});
  BOOST_TEST(on.lost_in(root) == 1U);
  BOOST_TEST(value_in(on, "n") == 2);
}

BOOST_AUTO_TEST_CASE(a_callback_of_another_turn_is_another_step) {
  warned_fixture on;
  const auto look
    = tool_of("look", [](const json&, tool_context&) { return json("seen"); });
  const auto turn = std::make_shared<int>(0);
  llm_options options;
  options.name = "a";
  options.model = scripted({{"a", {calling("look"), {.text = "ok"}}}});
  options.tools = {look};
  options.before_model
    = {[state = on.sessions().state(on.key),
        turn](callback_context& context,
              const model_request&) -> task<std::optional<model_response>> {
        if (++*turn == 1) {
          static_cast<void>(context.state().get("n", 0));
          auto set = state.set("n", 5);
          (co_await std::move(set)).value();
        } else {
          context.state().set("n", *turn);
        }
        co_return std::nullopt;
      }};
  BOOST_TEST(on.lost_in(llm(options)) == 0U);
  BOOST_TEST(value_in(on, "n") == 2);
}

// -- over a store ----

namespace {

// Continues in a later job of the lane.
struct yield {
  bool await_ready() const noexcept { return false; }

  void await_suspend(std::coroutine_handle<> waiting) const {
    executor::current()->post(waiting);
  }

  void await_resume() const noexcept {}
};

} // namespace

// The set is decided on a change whose commit fails. Decided again, it
// overwrites nothing.
BOOST_AUTO_TEST_CASE(an_event_that_is_decided_again_is_compared_again) {
  const staged_place place;
  auto options = place.options();
  options.threads = 1; // Its jobs run in the order in which they come.
  warned_fixture on(std::make_shared<std::vector<std::string>>(), options);
  const auto other = on.open("other");
  tally begun;
  std::atomic<bool> may_set = false;
  std::atomic<bool> has_set = false;
  const auto sets
    = custom("sets", [&](invocation_context& context) -> agent_run {
        const auto now = context.state().get("n", 0);
        begun.add();
        while (!may_set)
          co_await yield();
        context.state().set("n", now + 1);
        has_set = true;
        co_await context.emit(text("{}", "set"));
      });
  const auto releases
    = custom("releases", [&](invocation_context&) -> agent_run {
        begun.add();
        while (!has_set)
          co_await yield();
        // The session decides meanwhile.
        for (int count = 0; count < 10; ++count)
          co_await yield();
        place.script->release();
      });
  auto started = on.runtime.run(sets, on.key, "go");
  auto beside = on.runtime.run(releases, other, "go");
  begun.await(2);
  place.script->hold();
  const auto before = place.script->arrived.count();
  answers<event_ptr> appended;
  on.sessions().append_event(on.key, change({{"n", 9}})).then(appended.next());
  place.script->arrived.await(before + 1);
  place.script->next_commits({store_script::step::fail});
  may_set = true;
  BOOST_TEST(code_of(started.wait().get()) == "ok");
  beside.wait().value();
  BOOST_TEST(code_of(appended.await().at(0)) == "store_failed");
  BOOST_TEST(value_in(on, "n") == 1);
  BOOST_TEST(started.lost_updates_count() == 0U);
  BOOST_TEST(on.warnings->empty());
}

BOOST_AUTO_TEST_SUITE_END()
