// Runs on long sessions. When a run begins, the events that its agents read are
// in memory, and no others; older events are loaded on request.

#include "long_session.hpp"

#include "troupe/agents/summary.hpp"
#include "troupe/stores/open_store.hpp"

#include "../stores/temporary_folder.hpp"
#include <boost/test/unit_test.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(long_sessions)

namespace {

// Writes a session with so many events, and a summary 500 events before the
// newest one.
void fill(store& into, std::size_t events) {
  const owner_name owner{here.app, here.user, here.id};
  store_change created;
  created.kind = change_kind::create;
  created.owner = owner;
  created.event = std::make_shared<const event>();
  created.session_revision = 0;
  std::vector<store_change> changes{std::move(created)};
  for (std::size_t number = 1; number <= events; ++number) {
    auto said
      = number + 500 == events ? make_summary_event("sum") : numbered(number);
    said.id = "e" + std::to_string(number);
    store_change change;
    change.owner = owner;
    change.event = std::make_shared<const event>(std::move(said));
    change.session_revision = number;
    changes.push_back(std::move(change));
    if (changes.size() < 8'192 && number < events)
      continue;
    BOOST_TEST_REQUIRE(into.commit(changes).value().moved.empty());
    changes.clear();
  }
}

} // namespace

// -- number of events read ----

BOOST_FIXTURE_TEST_CASE(a_run_reads_no_more_than_its_agents, long_session) {
  sight seen;
  {
    runtime_fixture on(options());
    BOOST_TEST(run_on(on, looks("a", history_extent::newest(20), seen))
               == "a=done | ok");
    BOOST_TEST(seen.count == 21U);
    BOOST_TEST(seen.first == 1'981U);
    BOOST_TEST(seen.revision == 2'001U);
    BOOST_TEST(seen.texts.front() == "1981");
    BOOST_TEST(seen.texts.back() == "go");
    BOOST_TEST(read() <= 20U);
  }
  const auto before = read();
  runtime_fixture on(options());
  BOOST_TEST(run_on(on, looks("a", history_extent::none(), seen))
             == "a=done | ok");
  BOOST_TEST(seen.count == 1U);
  BOOST_TEST(seen.first == 2'003U);
  BOOST_TEST(read() - before <= 4U);
}

BOOST_FIXTURE_TEST_CASE(agents_that_read_all_see_all, long_session) {
  runtime_fixture on(options());
  sight seen;
  BOOST_TEST(run_on(on, looks("a", history_extent::all(), seen))
             == "a=done | ok");
  BOOST_TEST(seen.count == 2'001U);
  BOOST_TEST(seen.first == 1U);
}

BOOST_FIXTURE_TEST_CASE(a_run_reads_as_much_as_the_widest_of_its_agents,
                        long_session) {
  runtime_fixture on(options());
  sight few;
  sight all;
  const auto root = sequential("root",
                               {looks("a", history_extent::newest(3), few),
                                looks("b", history_extent::all(), all)});
  BOOST_TEST(run_on(on, root) == "a=done b=done | ok");
  // Each agent sees the events that it asks for, beside any other run.
  BOOST_TEST(few.count == 4U);
  BOOST_TEST(all.count == 2'002U);
}

BOOST_FIXTURE_TEST_CASE(a_run_reads_on_from_the_newest_summary, long_session) {
  {
    runtime_fixture on(place.beside());
    BOOST_TEST(on.append(here, make_summary_event("all so far", 1'990))
               == "ok");
    long_session::add(on, 2'002, 2'050);
  }
  runtime_fixture on(options());
  sight seen;
  BOOST_TEST(run_on(on, looks("a", history_extent::since_summary(), seen))
             == "a=done | ok");
  BOOST_TEST(seen.first == 1'991U);
  BOOST_TEST(seen.count == 61U);
  BOOST_TEST(read() < 500U);
}

BOOST_FIXTURE_TEST_CASE(without_a_summary_everything_is_read, long_session) {
  runtime_fixture on(options());
  sight seen;
  BOOST_TEST(run_on(on, looks("a", history_extent::since_summary(), seen))
             == "a=done | ok");
  BOOST_TEST(seen.first == 1U);
  BOOST_TEST(seen.count == 2'001U);
}

BOOST_AUTO_TEST_CASE(the_bound_is_the_same_without_a_store) {
  agent_fixture on;
  answers<event_ptr> appended;
  for (std::size_t number = 1; number <= 100; ++number)
    on.sessions().append_event(on.key, numbered(number)).then(appended.next());
  appended.await();
  sight seen;
  BOOST_TEST(on.perform(looks("a", history_extent::newest(20), seen))
             == "a=done | ok");
  BOOST_TEST(seen.count == 21U);
  BOOST_TEST(seen.first == 81U);
  std::size_t older = 0;
  const auto walker
    = custom({.name = "walker",
              .run = [&older](invocation_context& context) -> agent_run {
                const auto page = co_await context.events_before(81, 200);
                older = page.size();
              },
              .reads = history_extent::none()});
  BOOST_TEST(on.perform(walker) == "| ok");
  BOOST_TEST(older == 80U);
}

BOOST_AUTO_TEST_CASE(short_sessions_are_read_from_their_start) {
  agent_fixture on;
  sight seen;
  BOOST_TEST(on.perform(looks("a", history_extent::newest(20), seen))
             == "a=done | ok");
  BOOST_TEST(seen.count == 1U);
  BOOST_TEST(seen.first == 1U);
}

// -- history shown to models ----

BOOST_FIXTURE_TEST_CASE(a_model_sees_the_newest_events, long_session) {
  runtime_fixture on(options());
  const witness ear;
  const auto writer
    = llm({.name = "writer", .model = ear.model(), .contents_max = 5});
  BOOST_TEST(run_on(on, writer) == "writer=ok | ok");
  // The window starts at an event that is not the agent's own.
  BOOST_TEST(
    *ear.heard
      == std::vector<std::string>({"1997", "1998", "1999", "2000", "go"}),
    boost::test_tools::per_element());
  BOOST_TEST(read() <= 5U);
}

BOOST_FIXTURE_TEST_CASE(a_model_sees_what_came_since_a_summary, long_session) {
  {
    runtime_fixture on(place.beside());
    BOOST_TEST(on.append(here, make_summary_event("sums up", 1'998)) == "ok");
  }
  runtime_fixture on(options());
  const witness ear;
  const auto writer
    = llm({.name = "writer",
           .model = ear.model(),
           .include_contents = include_contents::since_summary});
  BOOST_TEST(run_on(on, writer) == "writer=ok | ok");
  BOOST_TEST_REQUIRE(ear.heard->size() == 4U);
  BOOST_TEST(ear.heard->at(0).ends_with("sums up"));
  BOOST_TEST(ear.heard->at(1) == "1999");
  BOOST_TEST(ear.heard->at(3) == "go");
}

// A run always sees the events that it has appended itself.
BOOST_FIXTURE_TEST_CASE(a_bounded_run_sees_its_own_events, long_session) {
  runtime_fixture on(options());
  std::vector<std::size_t> counts;
  const auto chatty
    = custom({.name = "chatty",
              .run = [&counts](invocation_context& context) -> agent_run {
                for (int round = 0; round < 100; ++round)
                  co_await context.emit(text("more"));
                counts = {context.events().size(), context.history(100).size()};
              },
              .reads = history_extent::newest(2)});
  on.runtime.run(chatty, here, "go").wait().value();
  BOOST_TEST(counts == std::vector<std::size_t>({103, 100}),
             boost::test_tools::per_element());
}

// -- outside of the bound ----

BOOST_FIXTURE_TEST_CASE(what_lies_beyond_the_bound_is_no_empty_answer,
                        long_session) {
  runtime_fixture on(options());
  const auto greedy
    = custom({.name = "greedy",
              .run = [](invocation_context& context) -> agent_run {
                context.history(22);
                co_return;
              },
              .reads = history_extent::newest(20)});
  BOOST_TEST(run_on(on, greedy) == "| invalid_argument");
  BOOST_TEST(agent_fixture::last_reason().find("wants the newest 22 events")
             != std::string::npos);
}

BOOST_FIXTURE_TEST_CASE(older_events_come_in_pages, long_session) {
  runtime_fixture on(options());
  std::vector<std::string> walked;
  std::size_t pages = 0;
  const auto walker
    = custom({.name = "walker",
              .run = [&](invocation_context& context) -> agent_run {
                for (auto next = context.first_revision(); next > 1;) {
                  const auto page = co_await context.events_before(next, 300);
                  for (auto index = page.size(); index > 0; --index)
                    walked.push_back(page[index - 1]->text());
                  next = page.first_number();
                  ++pages;
                }
                co_await context.emit(text("done"));
              },
              .reads = history_extent::newest(10)});
  BOOST_TEST(run_on(on, walker) == "walker=done | ok");
  BOOST_TEST(pages == 7U);
  BOOST_TEST_REQUIRE(walked.size() == 1'990U);
  for (std::size_t index = 0; index < walked.size(); ++index)
    BOOST_TEST_REQUIRE(walked[index] == std::to_string(1'990 - index));
  // The pages were not kept: a second walk reads them again.
  const auto before = read();
  BOOST_TEST(run_on(on, walker) == "walker=done | ok");
  BOOST_TEST(read() - before > 1'900U);
}

BOOST_FIXTURE_TEST_CASE(pages_have_their_bounds, long_session) {
  runtime_fixture on(options());
  std::vector<std::size_t> sizes;
  std::string refused;
  const auto walker
    = custom({.name = "walker",
              .run = [&](invocation_context& context) -> agent_run {
                const auto newest = context.revision();
                const auto first = co_await context.events_before(4, 10);
                const auto none = co_await context.events_before(1, 10);
                const auto last = co_await context.events_before(newest + 1, 2);
                sizes = {first.size(), none.size(), last.size()};
                co_await context.events_before(newest + 2, 2);
              },
              .reads = history_extent::none()});
  BOOST_TEST(run_on(on, walker) == "| invalid_argument");
  BOOST_TEST(sizes == std::vector<std::size_t>({3, 0, 2}),
             boost::test_tools::per_element());
}

BOOST_FIXTURE_TEST_CASE(a_page_that_cannot_be_read_is_an_error, long_session) {
  runtime_fixture on(options());
  const auto walker
    = custom({.name = "walker",
              .run = [&](invocation_context& context) -> agent_run {
                place.script->fail_loads(true);
                co_await context.events_before(100, 10);
              },
              .reads = history_extent::none()});
  BOOST_TEST(run_on(on, walker) == "| store_failed");
  place.script->fail_loads(false);
}

BOOST_FIXTURE_TEST_CASE(a_page_of_a_session_that_is_gone_is_an_error,
                        long_session) {
  runtime_fixture on(options());
  runtime_fixture other(place.beside());
  std::string page;
  const auto walker
    = custom({.name = "walker",
              .run = [&](invocation_context& context) -> agent_run {
                const auto removed = co_await other.sessions().remove(here);
                BOOST_TEST(removed.has_value());
                try {
                  co_await context.events_before(100, 10);
                  page = "ok";
                } catch (const error& thrown) {
                  page = to_string(thrown.code());
                }
              },
              .reads = history_extent::none()});
  static_cast<void>(on.runtime.run(walker, here, "go").wait().get());
  BOOST_TEST((page == "not_found" || page == "cancelled"), page);
}

// The session of the run has become shorter.
BOOST_FIXTURE_TEST_CASE(a_page_of_events_that_are_gone_cancels, long_session) {
  runtime_fixture on(options());
  runtime_fixture other(place.beside());
  std::string page;
  const auto walker = custom(
    {.name = "walker",
     .run = [&](invocation_context& context) -> agent_run {
       const auto newest = context.revision();
       const auto removed = co_await other.sessions().remove(here);
       BOOST_TEST(removed.has_value());
       create_request again{here.app, here.user, here.id};
       const auto made = co_await other.sessions().create(std::move(again));
       BOOST_TEST(made.has_value());
       const auto told = co_await on.sessions().append_event(here, counting());
       BOOST_TEST(told.has_value());
       try {
         co_await context.events_before(newest + 1, 5);
         page = "ok";
       } catch (const error& thrown) {
         page = to_string(thrown.code());
       }
     },
     .reads = history_extent::all()});
  static_cast<void>(on.runtime.run(walker, here, "go").wait().get());
  BOOST_TEST(page == "cancelled");
}

// The agent is not among the sub-agents, so its extent was not known at the
// start.
BOOST_FIXTURE_TEST_CASE(an_agent_that_reads_more_than_the_run_is_refused,
                        long_session) {
  runtime_fixture on(options());
  sight seen;
  const auto stranger = looks("stranger", history_extent::all(), seen);
  const auto root
    = custom({.name = "root",
              .run = [&stranger](invocation_context& context) -> agent_run {
                co_await context.run(stranger);
              },
              .reads = history_extent::newest(20)});
  BOOST_TEST(run_on(on, root) == "| invalid_argument");
  BOOST_TEST(agent_fixture::last_reason().find("'stranger' reads more")
             != std::string::npos);
}

// -- over SQLite ----

BOOST_AUTO_TEST_CASE(the_start_of_a_run_does_not_depend_on_the_history) {
  constexpr std::size_t events = 200'000;
  const temporary_folder folder;
  const auto address = "sqlite:" + (folder.path() / "long.db").string();
  {
    const auto kept
      = open_store(address, {.durability = durability::none}).value();
    fill(*kept, events);
    BOOST_TEST(kept->close().has_value());
  }
  const auto script = std::make_shared<store_script>();
  runtime_options options;
  options.store
    = std::make_shared<staged_store>(open_store(address, {}).value(), script);
  runtime_fixture on(std::move(options));
  for (const auto& [reads, most] :
       {std::pair(history_extent::none(), 64U),
        std::pair(history_extent::newest(100), 64U + 100U),
        std::pair(history_extent::since_summary(), 1'200U)}) {
    const auto before = script->events_read.load();
    sight seen;
    BOOST_TEST(run_on(on, looks("a", reads, seen)) == "a=done | ok");
    BOOST_TEST(script->events_read - before <= most);
    BOOST_TEST(seen.revision > events);
    BOOST_TEST(seen.count < 600U);
  }
}

BOOST_AUTO_TEST_SUITE_END()
