// Owners over a store: sessions in use are in memory; others leave it and are
// loaded again unchanged.

#include "../random.hpp"
#include "counting.hpp"
#include "staged_store.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;
namespace data = boost::unit_test::data;

using step = store_script::step;

BOOST_AUTO_TEST_SUITE(stored_memory)

BOOST_AUTO_TEST_CASE(long_sessions_keep_their_newest_events_in_memory) {
  const staged_place place;
  auto options = place.options();
  options.events_kept = 10;
  options.remembered_ids = 300;
  runtime_fixture on(std::move(options));
  on.open();
  std::vector<std::string> ids;
  for (int number = 0; number < 400; ++number) {
    ids.push_back("e" + std::to_string(number));
    BOOST_TEST_REQUIRE(on.append(here, change({{"a", number}}, ids.back()))
                       == "ok");
  }
  const auto recent = on.sessions().get(here, {.num_recent_events = 5}).value();
  BOOST_TEST(recent.events().size() == 5U);
  BOOST_TEST(recent.revision() == 400U);
  BOOST_TEST(place.script->event_loads.count() == 0U);
  BOOST_TEST(ids_of(on.events(here)) == ids);
  BOOST_TEST(place.script->event_loads.count() == 1U);
  // An old event is still known by its id.
  runtime_fixture again(place.options());
  BOOST_TEST(again.append(here, change({{"a", 150}}, "e150")) == "ok");
  BOOST_TEST(again.append(here, change({{"a", 0}}, "e151")) == "conflict");
  BOOST_TEST(again.append(here, change({{"a", 7}}, "e400")) == "ok");
  BOOST_TEST(again.fetch(here).revision() == 401U);
}

BOOST_AUTO_TEST_CASE(a_run_sees_the_whole_history) {
  const staged_place place;
  {
    runtime_fixture on(place.options());
    on.open();
    for (int number = 0; number < 300; ++number)
      BOOST_TEST_REQUIRE(on.append(here, counting()) == "ok");
  }
  auto options = place.options();
  options.events_kept = 4;
  runtime_fixture on(std::move(options));
  std::size_t seen = 0;
  const auto count
    = custom("count", [&seen](invocation_context& ctx) -> agent_run {
        seen = ctx.events().size();
        ctx.state().set("seen", seen);
        co_await ctx.emit(text("done"));
      });
  auto run = on.runtime.run(count, here, "Go!");
  BOOST_TEST(code_of(run.wait().get()) == "ok");
  BOOST_TEST(seen == 301U);
  BOOST_TEST(on.fetch(here).revision() == 302U);
  BOOST_TEST(on.state(here)["seen"] == 301);
}

BOOST_AUTO_TEST_CASE(a_run_keeps_its_history_when_its_session_loads_again) {
  const staged_place place;
  auto options = place.options();
  options.events_kept = 4;
  runtime_fixture on(std::move(options));
  on.open();
  for (int number = 0; number < 200; ++number)
    BOOST_TEST_REQUIRE(on.append(here, counting()) == "ok");
  std::vector<std::size_t> seen;
  const auto count = custom("count", [&](invocation_context& ctx) -> agent_run {
    seen.push_back(ctx.events().size());
    co_await ctx.emit(text("one"));
    // The commit of another caller fails, which makes the session load again.
    place.script->next_commits({step::fail});
    const auto lost = co_await on.sessions().append_event(here, counting());
    seen.push_back(lost ? 1 : 0);
    co_await ctx.emit(text("two"));
    seen.push_back(ctx.events().size());
  });
  BOOST_TEST(code_of(on.runtime.run(count, here, "Go!").wait().get()) == "ok");
  BOOST_TEST(seen == std::vector<std::size_t>({201, 0, 203}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(sessions_leave_memory_when_there_are_too_many) {
  const staged_place place;
  auto options = place.options();
  options.live_sessions_max = 10;
  runtime_fixture on(std::move(options));
  for (int number = 0; number < 100; ++number) {
    const auto key = on.open("s" + std::to_string(number));
    BOOST_TEST_REQUIRE(on.append(key, counting()) == "ok");
  }
  const auto before = place.script->session_loads.count();
  for (int round = 0; round < 2; ++round)
    for (int number = 0; number < 100; ++number)
      BOOST_TEST_REQUIRE(
        on.append({"press", "ann", "s" + std::to_string(number)}, counting())
        == "ok");
  // Each round had to load most sessions again.
  BOOST_TEST(place.script->session_loads.count() - before > 100U);
  BOOST_TEST(on.app_state() == json({{"n", 300}}));
}

BOOST_DATA_TEST_CASE(calls_keep_their_order_while_sessions_come_and_go,
                     data::xrange(10),
                     seed) {
  const staged_place place;
  constexpr std::size_t sessions = 6;
  {
    runtime_fixture first(place.options());
    for (std::size_t index = 0; index < sessions; ++index)
      first.open("s" + std::to_string(index));
  }
  auto options = place.options();
  options.live_sessions_max = 1;
  runtime_fixture on(std::move(options));
  // The sources print their seeds to the test's log, which is not thread-safe.
  std::vector<random_source> randoms;
  for (std::uint64_t thread = 0; thread < 3; ++thread)
    randoms.emplace_back(static_cast<std::uint64_t>(seed) * 3 + thread);
  on_threads(3, [&](std::size_t thread) {
    auto& random = randoms[thread];
    answers<event_ptr> appended;
    for (int number = 0; number < 200; ++number) {
      const auto id = "s" + std::to_string(random.below(sessions));
      auto said = random.one_in(2) ? counting() : change({{"last", number}});
      said.id = std::to_string(thread) + "-" + std::to_string(number);
      on.sessions()
        .append_event({"press", "ann", id}, std::move(said))
        .then(appended.next());
      // The pause lets sessions leave memory.
      if (random.one_in(20))
        appended.await();
    }
    for (const auto& each : appended.await())
      each.value();
  });
  for (std::size_t index = 0; index < sessions; ++index)
    check_source_order(
      on.events({"press", "ann", "s" + std::to_string(index)}));
}

BOOST_AUTO_TEST_CASE(idle_sessions_leave_memory_after_a_while) {
  const staged_place place;
  auto time = std::make_shared<simulated_environment>(1);
  auto options = place.options();
  options.environment = time;
  options.session_idle_max = 4min;
  runtime_fixture on(std::move(options));
  on.open();
  on.open("t");
  const auto loads = [&place] { return place.script->session_loads.count(); };
  auto before = loads();
  for (int minute = 0; minute < 10; ++minute) {
    time->advance(1min);
    BOOST_TEST_REQUIRE(on.append(here, counting()) == "ok");
  }
  // The used session was not evicted.
  BOOST_TEST(loads() == before);
  // The other one leaves on another thread, which may be slow.
  for (int tries = 0; loads() == before && tries < 10'000; ++tries) {
    BOOST_TEST_REQUIRE(on.fetch({"press", "ann", "t"}).revision() == 0U);
    time->advance(5min);
  }
  BOOST_TEST(loads() == before + 1);
}

BOOST_AUTO_TEST_CASE(apps_leave_memory_when_there_are_too_many) {
  const staged_place place;
  auto options = place.options();
  options.live_sessions_max = 8;
  runtime_fixture on(std::move(options));
  const auto ask = [&on](int number) {
    const auto app = "app-" + std::to_string(number);
    BOOST_TEST(on.sessions().app_state(app).value() == json::object());
  };
  for (int number = 0; number < 100; ++number)
    ask(number);
  const auto before = place.script->scope_loads.count();
  for (int number = 0; number < 100; ++number)
    ask(number);
  // Most apps had to be loaded again.
  BOOST_TEST(place.script->scope_loads.count() - before > 50U);
}

BOOST_AUTO_TEST_CASE(idle_apps_leave_memory_after_a_while) {
  const staged_place place;
  auto time = std::make_shared<simulated_environment>(1);
  auto options = place.options();
  options.environment = time;
  options.session_idle_max = 4min;
  runtime_fixture on(std::move(options));
  on.open();
  BOOST_TEST(on.append(here, counting()) == "ok");
  // The session leaves first, then the user, then the app. Each leaves when its
  // turn comes, so the test waits in a loop.
  const auto loads = [&place] { return place.script->scope_loads.count(); };
  const auto before = loads();
  for (int occasion = 0; occasion < 10'000 && loads() == before; ++occasion) {
    for (int minute = 0; minute < 12; ++minute) {
      time->advance(1min);
      std::this_thread::yield();
    }
    BOOST_TEST_REQUIRE(on.app_state() == json({{"n", 1}}));
  }
  BOOST_TEST(loads() > before);
  BOOST_TEST(on.append(here, counting()) == "ok");
  BOOST_TEST(on.state(here) == counted(2));
}

// Every call is answered and no event is lost while apps are evicted.
BOOST_AUTO_TEST_CASE(apps_come_and_go_under_load) {
  const staged_place place;
  constexpr std::size_t threads = 4;
  constexpr int each = 300;
  const auto app_of
    = [](std::size_t number) { return "app-" + std::to_string(number % 12); };
  {
    auto options = place.options();
    options.live_sessions_max = 2;
    runtime_fixture on(std::move(options));
    for (std::size_t index = 0; index < 12; ++index)
      on.sessions().create({app_of(index), "ann", "s"}).value();
    std::atomic<int> ok = 0;
    on_threads(threads, [&](std::size_t thread) {
      for (int number = 0; number < each; ++number) {
        const auto app = app_of(thread + static_cast<std::size_t>(number));
        ok += on.append({app, "ann", "s"}, counting()) == "ok" ? 1 : 0;
        if (number % 7 == 0)
          ok += code_of(on.sessions().get({app, "bob", "none"}).get()) == "ok"
                  ? 1
                  : 0;
      }
    });
    BOOST_TEST(ok == static_cast<int>(threads) * each);
  }
  runtime_fixture after(place.options());
  int total = 0;
  for (std::size_t index = 0; index < 12; ++index)
    total += after.sessions().app_state(app_of(index)).value()["n"].get<int>();
  BOOST_TEST(total == static_cast<int>(threads) * each);
  BOOST_TEST(place.damage().empty());
}

BOOST_AUTO_TEST_CASE(asking_for_what_is_not_there_leaves_nothing_behind) {
  const staged_place place;
  runtime_fixture on(place.options());
  for (int number = 0; number < 50; ++number) {
    const session_key unknown{
      "press", "u" + std::to_string(number), std::to_string(number)};
    BOOST_TEST(code_of(on.sessions().get(unknown).get()) == "not_found");
    BOOST_TEST(on.append(unknown, counting()) == "not_found");
    BOOST_TEST(!on.sessions().remove(unknown).value());
    BOOST_TEST(!on.sessions().remove_user("press", unknown.user).value());
    BOOST_TEST(on.user_state(unknown.user) == json::object());
    const auto idle
      = custom("idle", [](invocation_context&) -> agent_run { co_return; });
    BOOST_TEST(code_of(on.runtime.run(idle, unknown, "Go!").wait().get())
               == "not_found");
  }
  BOOST_TEST(on.rows().empty());
  // Memory does not keep them either: most are searched again in the store.
  const auto before = place.script->session_loads.count();
  for (int number = 0; number < 50; ++number)
    BOOST_TEST(
      code_of(
        on.sessions()
          .get({"press", "u" + std::to_string(number), std::to_string(number)})
          .get())
      == "not_found");
  BOOST_TEST(place.script->session_loads.count() - before > 40U);
}

BOOST_AUTO_TEST_SUITE_END()
