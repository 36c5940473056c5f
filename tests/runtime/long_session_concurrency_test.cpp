// Concurrent runs on a long session, and other programs that change it.

#include "troupe/agents/summary.hpp"

#include "long_session.hpp"
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using namespace troupe;
using namespace troupe::testing;

using step = store_script::step;

BOOST_AUTO_TEST_SUITE(long_sessions)

BOOST_FIXTURE_TEST_CASE(runs_start_in_order_whatever_they_read, long_session) {
  gate load;
  place.script->on_event_load = [&load] { load.pass(); };
  runtime_fixture on(options());
  sight all;
  sight none;
  auto first
    = on.runtime.run(looks("a", history_extent::all(), all), here, "first");
  load.await_arrival();
  auto second
    = on.runtime.run(looks("b", history_extent::none(), none), here, "second");
  // The `get` takes the same way, after the second start.
  BOOST_TEST(
    on.sessions().get(here, {.num_recent_events = 0}).value().revision()
    == 2'000U);
  load.open();
  BOOST_TEST(code_of(first.wait().get()) == "ok");
  BOOST_TEST(code_of(second.wait().get()) == "ok");
  BOOST_TEST(all.first == 1U);
  BOOST_TEST(all.texts.back() == "first");
  BOOST_TEST(none.texts == std::vector<std::string>({"second"}),
             boost::test_tools::per_element());
  BOOST_TEST(none.first == 2'003U);
}

BOOST_FIXTURE_TEST_CASE(a_run_is_cancelled_while_its_history_is_fetched,
                        long_session) {
  gate load;
  std::atomic<bool> has_loaded = false;
  place.script->on_event_load = [&] {
    const std::shared_ptr<void> at_end(nullptr,
                                       [&](void*) { has_loaded = true; });
    load.pass();
  };
  runtime_fixture on(options());
  sight all;
  auto waiting
    = on.runtime.run(looks("a", history_extent::all(), all), here, "first");
  load.await_arrival();
  waiting.cancel();
  BOOST_TEST(code_of(waiting.wait().get()) == "cancelled");
  BOOST_TEST(!has_loaded);
  load.open();
  BOOST_TEST(on.fetch(here).revision() == 2'000U);
}

// Another program removes the session, or creates it again, while the events
// before a summary are searched.
struct searched_session : long_session {
  std::string
  search(const std::function<void(runtime_fixture& other)>& meanwhile) {
    gate page;
    place.script->on_event_load = [&page] { page.pass(); };
    runtime_fixture on(options());
    runtime_fixture other(place.beside());
    auto started = on.runtime.run(
      looks("a", history_extent::since_summary(), seen), here, "go");
    page.await_arrival();
    meanwhile(other);
    // The session learns of the change here.
    static_cast<void>(on.append(here, change({{"a", 1}})));
    page.open();
    const auto ended = started.wait().get();
    place.script->on_event_load = nullptr;
    return code_of(ended);
  }

  sight seen;
};

BOOST_FIXTURE_TEST_CASE(a_search_in_a_removed_session_finds_it_gone,
                        searched_session) {
  const auto ended = search([](runtime_fixture& other) {
    BOOST_TEST(other.sessions().remove(here).get().has_value());
  });
  BOOST_TEST(ended == "not_found");
}

BOOST_FIXTURE_TEST_CASE(a_search_goes_on_in_the_session_that_is_there,
                        searched_session) {
  const auto ended = search([](runtime_fixture& other) {
    make_anew(other, 1'000);
    auto sum = make_summary_event("old");
    BOOST_TEST(other.sessions().append_event(here, sum).get().has_value());
    add(other, 1'001, 2'500);
    sum = make_summary_event("new");
    BOOST_TEST(other.sessions().append_event(here, sum).get().has_value());
    add(other, 2'501, 2'600);
  });
  BOOST_TEST(ended == "ok");
  // The summary, the 100 events after it, the event appended in `search`, and
  // the message.
  BOOST_TEST(seen.count == 103U);
}

// The run waited with a bounded part of the history in memory. The session is
// shorter when its turn comes.
BOOST_FIXTURE_TEST_CASE(a_run_gets_its_turn_while_its_session_loads,
                        long_session) {
  gate load;
  std::atomic<bool> hold = false;
  place.script->on_session_load = [&] {
    if (hold)
      load.pass();
  };
  runtime_fixture on(options());
  runtime_fixture other(place.beside());
  auto held = std::make_shared<held_model>();
  const auto talker = llm({.name = "talker",
                           .model = held,
                           .include_contents = include_contents::none});
  sight seen;
  auto first = on.runtime.run(talker, here, "go");
  held->asked.await(1);
  const auto read_before = read();
  auto second
    = on.runtime.run(looks("b", history_extent::newest(50), seen), here, "go");
  // The run waits for its turn once its events have come from the store.
  while (read() == read_before)
    std::this_thread::yield();
  on.sessions().get(here, {.num_recent_events = 50}).value();
  make_anew(other, 1'000);
  hold = true;
  answers<event_ptr> appended;
  on.sessions().append_event(here, counting()).then(appended.next());
  load.await_arrival();
  first.cancel();
  static_cast<void>(first.wait().get());
  load.open();
  appended.await();
  const auto ended = second.wait().get();
  BOOST_TEST(code_of(ended) == "ok", reason_of(ended));
  BOOST_TEST(seen.count >= 51U);
}

BOOST_FIXTURE_TEST_CASE(a_bounded_run_keeps_its_events_when_they_load_again,
                        long_session) {
  runtime_fixture on(options());
  std::vector<std::size_t> counts;
  std::vector<std::uint64_t> firsts;
  const auto note = [&](const invocation_context& context) {
    counts.push_back(context.events().size());
    firsts.push_back(context.first_revision());
  };
  const auto root
    = custom({.name = "root",
              .run = [&](invocation_context& context) -> agent_run {
                note(context);
                // The commit of another caller fails, which makes the session
                // load again.
                place.script->next_commits({step::fail});
                const auto lost
                  = co_await on.sessions().append_event(here, counting());
                BOOST_TEST(code_of(lost) == "store_failed");
                co_await context.emit(text("one"));
                note(context);
              },
              .reads = history_extent::newest(50)});
  BOOST_TEST(code_of(on.runtime.run(root, here, "go").wait().get()) == "ok");
  BOOST_TEST(counts == std::vector<std::size_t>({51, 52}),
             boost::test_tools::per_element());
  BOOST_TEST(firsts == std::vector<std::uint64_t>({1'951, 1'951}),
             boost::test_tools::per_element());
}

BOOST_FIXTURE_TEST_CASE(a_bounded_run_sees_what_other_programs_append,
                        long_session) {
  runtime_fixture on(options());
  runtime_fixture other(place.beside());
  sight seen;
  const auto root
    = custom({.name = "root",
              .run = [&](invocation_context& context) -> agent_run {
                for (std::size_t number = 3'001; number <= 3'100; ++number) {
                  const auto appended = co_await other.sessions().append_event(
                    here, numbered(number));
                  BOOST_TEST(appended.has_value());
                }
                co_await context.emit(text("one"));
                seen = look(context);
                const auto page = co_await context.events_before(2'060, 3);
                BOOST_TEST(page[0]->text() == "3056");
              },
              .reads = history_extent::newest(3)});
  BOOST_TEST(code_of(on.runtime.run(root, here, "go").wait().get()) == "ok");
  BOOST_TEST(seen.first == 1'998U);
  BOOST_TEST_REQUIRE(seen.count == 105U);
  BOOST_TEST(seen.texts.at(3) == "go");
  BOOST_TEST(seen.texts.at(4) == "3001");
  BOOST_TEST(seen.texts.back() == "one");
}

// The runs follow each other directly, so the session is never idle.
BOOST_FIXTURE_TEST_CASE(events_that_no_run_reads_any_more_are_forgotten,
                        long_session) {
  runtime_fixture on(options());
  held_model* model = nullptr;
  auto held = std::make_shared<held_model>();
  model = held.get();
  const auto talker = llm({.name = "talker",
                           .model = held,
                           .include_contents = include_contents::none});
  std::vector<run> runs;
  for (int round = 0; round < 100; ++round)
    runs.push_back(on.runtime.run(talker, here, "go"));
  for (std::size_t round = 1; round <= 99; ++round) {
    model->asked.await(round);
    model->answer("ok");
  }
  model->asked.await(100);
  // The last run is under way. Of the others only the newest events are in
  // memory.
  const auto before = read();
  BOOST_TEST(
    on.sessions().get(here, {.num_recent_events = 150}).value().events().size()
    == 150U);
  BOOST_TEST(read() - before > 90U);
  model->answer("ok");
  for (auto& each : runs)
    BOOST_TEST(code_of(each.wait().get()) == "ok");
}

// A run that reads all events waits for its turn after runs that do not.
BOOST_FIXTURE_TEST_CASE(what_waiting_runs_read_is_kept_for_them, long_session) {
  runtime_fixture on(options());
  auto held = std::make_shared<held_model>();
  const auto talker = llm({.name = "talker",
                           .model = held,
                           .include_contents = include_contents::none});
  auto first = on.runtime.run(talker, here, "go");
  held->asked.await(1);
  sight all;
  sight newest;
  auto second = on.runtime.run(
    looks("a", history_extent::newest(1'000), newest), here, "second");
  auto third
    = on.runtime.run(looks("b", history_extent::all(), all), here, "third");
  long_session::add(on, 3'001, 3'200);
  held->answer("ok");
  for (auto* each : {&first, &second, &third})
    BOOST_TEST(code_of(each->wait().get()) == "ok");
  BOOST_TEST(newest.count == 1'001U);
  BOOST_TEST(newest.first == 1'203U);
  BOOST_TEST(all.first == 1U);
  BOOST_TEST(all.count == 2'205U);
}

BOOST_AUTO_TEST_SUITE_END()
