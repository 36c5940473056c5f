// Runs on long sessions: what their agents read is in memory when they begin,
// and no more; older events come when they are awaited.

#include "troupe/agents/summary.hpp"
#include "troupe/stores/open_store.hpp"

#include "../stores/temporary_folder.hpp"
#include "counting.hpp"
#include "desk.hpp"
#include "staged_store.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

using step = store_script::step;

namespace {

// What an agent has seen when it began.
struct sight {
  std::size_t count = 0;
  std::uint64_t first = 0;
  std::uint64_t revision = 0;
  std::vector<std::string> texts;
};

sight look(const invocation_context& context) {
  sight seen{
    context.events().size(), context.first_revision(), context.revision(), {}};
  for (const auto& said : context.events())
    seen.texts.push_back(said.text());
  return seen;
}

agent looks(const std::string& name, history_extent reads, sight& seen) {
  return custom({.name = name,
                 .run = [&seen](invocation_context& context) -> agent_run {
                   seen = look(context);
                   co_await context.emit(text("done"));
                 },
                 .reads = reads});
}

// A model that keeps the texts of its newest request, and says "ok".
struct witness {
  std::shared_ptr<std::vector<std::string>> heard
    = std::make_shared<std::vector<std::string>>();

  model_ptr model() const {
    return std::make_shared<made_model>(
      [kept = heard](const model_request& request, const model_reply& reply) {
        kept->clear();
        for (const auto& each : request.contents)
          kept->push_back(each->text());
        reply(model_response(content("model", {part("ok")})));
      });
  }
};

event numbered(std::size_t number) {
  event said(text("{}", number));
  said.author = number % 2 == 0 ? "writer" : "user";
  said.content.role = number % 2 == 0 ? "model" : "user";
  said.id = "e" + std::to_string(number);
  return said;
}

// A session of events "1", "2", … of the user and a writer in turns.
struct long_session {
  explicit long_session(std::size_t events = 2'000) {
    stage on(place.beside());
    on.open();
    add(on, 1, events);
  }

  static void add(stage& on, std::size_t first, std::size_t last) {
    answers<event_ptr> appended;
    for (auto number = first; number <= last; ++number)
      on.sessions().append_event(here, numbered(number), {}, appended.next());
    for (const auto& each : appended.await())
      BOOST_TEST_REQUIRE(code_of(each) == "ok");
  }

  runtime_options options() const {
    auto few = place.options();
    few.events_kept = 4;
    return few;
  }

  std::size_t read() const { return place.script->events_read; }

  const staged_place place;
};

// Writes a session with so many events, a summary 500 before the newest.
void fill(store& into, std::size_t events) {
  const owner_name owner{here.app, here.user, here.id};
  store_change created;
  created.kind = change_kind::create;
  created.owner = owner;
  created.said = std::make_shared<const event>();
  created.session_revision = 0;
  std::vector<store_change> changes{std::move(created)};
  for (std::size_t number = 1; number <= events; ++number) {
    auto said
      = number + 500 == events ? make_summary_event("sum") : numbered(number);
    said.id = "e" + std::to_string(number);
    store_change change;
    change.owner = owner;
    change.said = std::make_shared<const event>(std::move(said));
    change.session_revision = number;
    changes.push_back(std::move(change));
    if (changes.size() < 8'192 && number < events)
      continue;
    BOOST_TEST_REQUIRE(into.commit(changes).value().moved.empty());
    changes.clear();
  }
}

std::string run_on(stage& on, const agent& root, content message) {
  return play::show(on.runtime.run(root, here, std::move(message)));
}

std::string run_on(stage& on, const agent& root) {
  return run_on(on, root, user_text("go"));
}

} // namespace

BOOST_AUTO_TEST_SUITE(long_sessions)

// -- how much is read --------------------------------------------------------

BOOST_FIXTURE_TEST_CASE(a_run_reads_no_more_than_its_agents, long_session) {
  sight seen;
  {
    stage on(options());
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
  stage on(options());
  BOOST_TEST(run_on(on, looks("a", history_extent::none(), seen))
             == "a=done | ok");
  BOOST_TEST(seen.count == 1U);
  BOOST_TEST(seen.first == 2'003U);
  BOOST_TEST(read() - before <= 4U);
}

BOOST_FIXTURE_TEST_CASE(agents_that_read_all_see_all, long_session) {
  stage on(options());
  sight seen;
  BOOST_TEST(run_on(on, looks("a", history_extent::all(), seen))
             == "a=done | ok");
  BOOST_TEST(seen.count == 2'001U);
  BOOST_TEST(seen.first == 1U);
}

BOOST_FIXTURE_TEST_CASE(a_run_reads_as_much_as_the_widest_of_its_agents,
                        long_session) {
  stage on(options());
  sight few;
  sight all;
  const auto root = sequential("root",
                               {looks("a", history_extent::newest(3), few),
                                looks("b", history_extent::all(), all)});
  BOOST_TEST(run_on(on, root) == "a=done b=done | ok");
  // Each sees what it states, whoever runs beside it.
  BOOST_TEST(few.count == 4U);
  BOOST_TEST(all.count == 2'002U);
}

BOOST_FIXTURE_TEST_CASE(a_run_reads_on_from_the_newest_summary, long_session) {
  {
    stage on(place.beside());
    BOOST_TEST(on.append(here, make_summary_event("all so far", 1'990))
               == "ok");
    long_session::add(on, 2'002, 2'050);
  }
  stage on(options());
  sight seen;
  BOOST_TEST(run_on(on, looks("a", history_extent::since_summary(), seen))
             == "a=done | ok");
  BOOST_TEST(seen.first == 1'991U);
  BOOST_TEST(seen.count == 61U);
  BOOST_TEST(read() < 500U);
}

BOOST_FIXTURE_TEST_CASE(without_a_summary_everything_is_read, long_session) {
  stage on(options());
  sight seen;
  BOOST_TEST(run_on(on, looks("a", history_extent::since_summary(), seen))
             == "a=done | ok");
  BOOST_TEST(seen.first == 1U);
  BOOST_TEST(seen.count == 2'001U);
}

BOOST_AUTO_TEST_CASE(the_bound_is_the_same_without_a_store) {
  play on;
  answers<event_ptr> appended;
  for (std::size_t number = 1; number <= 100; ++number)
    on.sessions().append_event(on.key, numbered(number), {}, appended.next());
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
  play on;
  sight seen;
  BOOST_TEST(on.perform(looks("a", history_extent::newest(20), seen))
             == "a=done | ok");
  BOOST_TEST(seen.count == 1U);
  BOOST_TEST(seen.first == 1U);
}

// -- what models see ---------------------------------------------------------

BOOST_FIXTURE_TEST_CASE(a_model_sees_the_newest_events, long_session) {
  stage on(options());
  const witness ear;
  const auto writer
    = llm({.name = "writer", .model = ear.model(), .contents_max = 5});
  BOOST_TEST(run_on(on, writer) == "writer=ok | ok");
  // From the first on that is not its own.
  BOOST_TEST(
    *ear.heard
      == std::vector<std::string>({"1997", "1998", "1999", "2000", "go"}),
    boost::test_tools::per_element());
  BOOST_TEST(read() <= 5U);
}

BOOST_FIXTURE_TEST_CASE(a_model_sees_what_came_since_a_summary, long_session) {
  {
    stage on(place.beside());
    BOOST_TEST(on.append(here, make_summary_event("sums up", 1'998)) == "ok");
  }
  stage on(options());
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

// What a run appends itself it always sees.
BOOST_FIXTURE_TEST_CASE(a_bounded_run_sees_its_own_events, long_session) {
  stage on(options());
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

// -- beyond the bound --------------------------------------------------------

BOOST_FIXTURE_TEST_CASE(what_lies_beyond_the_bound_is_no_empty_answer,
                        long_session) {
  stage on(options());
  const auto greedy
    = custom({.name = "greedy",
              .run = [](invocation_context& context) -> agent_run {
                context.history(22);
                co_return;
              },
              .reads = history_extent::newest(20)});
  BOOST_TEST(run_on(on, greedy) == "| invalid_argument");
  BOOST_TEST(play::last_reason().find("wants the newest 22 events")
             != std::string::npos);
}

BOOST_FIXTURE_TEST_CASE(older_events_come_in_pages, long_session) {
  stage on(options());
  std::vector<std::string> walked;
  std::size_t pages = 0;
  const auto walker
    = custom({.name = "walker",
              .run = [&](invocation_context& context) -> agent_run {
                for (auto next = context.first_revision(); next > 1;) {
                  const auto page = co_await context.events_before(next, 300);
                  for (auto index = page.size(); index > 0; --index)
                    walked.push_back(page[index - 1]->text());
                  next -= page.size();
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
  // Nothing of it has stayed: who walks again reads again.
  const auto before = read();
  BOOST_TEST(run_on(on, walker) == "walker=done | ok");
  BOOST_TEST(read() - before > 1'900U);
}

BOOST_FIXTURE_TEST_CASE(pages_have_their_bounds, long_session) {
  stage on(options());
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
  stage on(options());
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
  stage on(options());
  stage other(place.beside());
  std::string page;
  const auto walker
    = custom({.name = "walker",
              .run = [&](invocation_context& context) -> agent_run {
                const auto removed
                  = co_await other.sessions().remove_async(here);
                BOOST_TEST(removed.has_value());
                try {
                  co_await context.events_before(100, 10);
                  page = "ok";
                } catch (const error& thrown) {
                  page = to_string(thrown.code());
                }
              },
              .reads = history_extent::none()});
  static_cast<void>(on.runtime.run(walker, here, "go").wait());
  BOOST_TEST((page == "not_found" || page == "cancelled"), page);
}

// It is not among the sub-agents, so nobody knew what it reads.
BOOST_FIXTURE_TEST_CASE(an_agent_that_reads_more_than_the_run_is_refused,
                        long_session) {
  stage on(options());
  sight seen;
  const auto stranger = looks("stranger", history_extent::all(), seen);
  const auto root
    = custom({.name = "root",
              .run = [&stranger](invocation_context& context) -> agent_run {
                co_await context.run(stranger);
              },
              .reads = history_extent::newest(20)});
  BOOST_TEST(run_on(on, root) == "| invalid_argument");
  BOOST_TEST(play::last_reason().find("'stranger' reads more")
             != std::string::npos);
}

// -- runs that go on ---------------------------------------------------------

BOOST_FIXTURE_TEST_CASE(a_run_goes_on_from_a_pause_far_back, long_session) {
  const auto model
    = scripted({{"buyer", {calling("order"), {.text = "bought"}}}});
  const auto buyer = llm({.name = "buyer",
                          .model = model,
                          .tools = {order()},
                          .include_contents = include_contents::none});
  std::string call;
  {
    stage on(options());
    auto started = on.runtime.run(buyer, here, "buy");
    BOOST_TEST(code_of(started.wait()) == "ok");
    call = started.waits_for().at(0);
    long_session::add(on, 3'001, 3'700);
  }
  stage on(options());
  const auto before = read();
  const content answer(
    "user", {part(function_response{call, "order", json{{"ok", true}}})});
  BOOST_TEST(run_on(on, buyer, answer) == "buyer=bought | ok");
  // Not the events before the message of the first run.
  BOOST_TEST(read() - before < 2 * 1'100U);
}

BOOST_FIXTURE_TEST_CASE(an_agent_that_goes_on_sees_its_earlier_events,
                        long_session) {
  sight seen;
  const auto waits
    = llm({.name = "waits",
           .model = scripted({{"waits", {calling("order"), {.text = "x"}}}}),
           .tools = {order()},
           .include_contents = include_contents::none});
  const auto root
    = custom({.name = "root",
              .run = [&seen, waits](invocation_context& context) -> agent_run {
                if (!context.is_resumed())
                  co_await context.emit(text("mine"));
                seen = look(context);
                co_await context.run(waits);
              },
              .reads = history_extent::none()},
             {waits});
  stage on(options());
  auto started = on.runtime.run(root, here, "buy");
  BOOST_TEST(code_of(started.wait()) == "ok");
  const auto call = started.waits_for().at(0);
  long_session::add(on, 3'001, 3'050);
  BOOST_TEST(
    run_on(on,
           root,
           content("user",
                   {part(function_response{call, "order", json{{"ok", 1}}})}))
    == "waits=x | ok");
  BOOST_TEST_REQUIRE(seen.texts.size() > 2U);
  BOOST_TEST(seen.texts.at(0) == "buy");
  BOOST_TEST(seen.texts.at(1) == "mine");
}

// The search for the call is over all of the history, and keeps none of it.
BOOST_FIXTURE_TEST_CASE(an_answer_to_no_call_is_refused, long_session) {
  stage on(options());
  const witness ear;
  const auto writer = llm({.name = "writer",
                           .model = ear.model(),
                           .include_contents = include_contents::none});
  const content answer(
    "user", {part(function_response{"c1", "order", json::object()})});
  BOOST_TEST(run_on(on, writer, answer) == "| invalid_argument");
  const auto before = read();
  BOOST_TEST(on.events(here).size() == 2'000U);
  BOOST_TEST(read() - before > 1'900U);
}

BOOST_FIXTURE_TEST_CASE(a_conversation_stays_with_who_spoke_far_back,
                        long_session) {
  const auto tree = [] {
    return llm(
      {.name = "desk",
       .model = scripted(
         {{"desk", {calling("transfer_to_agent", {{"agent_name", "clerk"}})}}}),
       .include_contents = include_contents::none},
      {llm({.name = "clerk",
            .model = scripted({{"clerk", {{.text = "yes"}}}}),
            .include_contents = include_contents::none})});
  };
  stage on(options());
  BOOST_TEST(run_on(on, tree()) == "desk= desk= clerk=yes | ok");
  long_session::add(on, 3'001, 3'500);
  BOOST_TEST(run_on(on, tree()) == "clerk=yes | ok");
}

// -- beside others -----------------------------------------------------------

BOOST_FIXTURE_TEST_CASE(runs_start_in_order_whatever_they_read, long_session) {
  gate load;
  place.script->on_event_load = [&load] { load.pass(); };
  stage on(options());
  sight all;
  sight none;
  auto first
    = on.runtime.run(looks("a", history_extent::all(), all), here, "first");
  load.await_arrival();
  auto second
    = on.runtime.run(looks("b", history_extent::none(), none), here, "second");
  // It goes the same way, behind the second start.
  BOOST_TEST(
    on.sessions().get(here, {.num_recent_events = 0}).value().revision()
    == 2'000U);
  load.open();
  BOOST_TEST(code_of(first.wait()) == "ok");
  BOOST_TEST(code_of(second.wait()) == "ok");
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
  stage on(options());
  sight all;
  auto waiting
    = on.runtime.run(looks("a", history_extent::all(), all), here, "first");
  load.await_arrival();
  waiting.cancel();
  BOOST_TEST(code_of(waiting.wait()) == "cancelled");
  BOOST_TEST(!has_loaded);
  load.open();
  BOOST_TEST(on.fetch(here).revision() == 2'000U);
}

BOOST_FIXTURE_TEST_CASE(a_bounded_run_keeps_its_events_when_they_load_again,
                        long_session) {
  stage on(options());
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
                // Fails for another caller, and makes the session load again.
                place.script->next_commits({step::fail});
                const auto lost
                  = co_await on.sessions().append_event_async(here, counting());
                BOOST_TEST(code_of(lost) == "store_failed");
                co_await context.emit(text("one"));
                note(context);
              },
              .reads = history_extent::newest(50)});
  BOOST_TEST(code_of(on.runtime.run(root, here, "go").wait()) == "ok");
  BOOST_TEST(counts == std::vector<std::size_t>({51, 52}),
             boost::test_tools::per_element());
  BOOST_TEST(firsts == std::vector<std::uint64_t>({1'951, 1'951}),
             boost::test_tools::per_element());
}

BOOST_FIXTURE_TEST_CASE(a_bounded_run_sees_what_other_programs_append,
                        long_session) {
  stage on(options());
  stage other(place.beside());
  sight seen;
  const auto root
    = custom({.name = "root",
              .run = [&](invocation_context& context) -> agent_run {
                for (std::size_t number = 3'001; number <= 3'100; ++number) {
                  const auto appended
                    = co_await other.sessions().append_event_async(
                      here, numbered(number));
                  BOOST_TEST(appended.has_value());
                }
                co_await context.emit(text("one"));
                seen = look(context);
                const auto page = co_await context.events_before(2'060, 3);
                BOOST_TEST(page[0]->text() == "3056");
              },
              .reads = history_extent::newest(3)});
  BOOST_TEST(code_of(on.runtime.run(root, here, "go").wait()) == "ok");
  BOOST_TEST(seen.first == 1'998U);
  BOOST_TEST_REQUIRE(seen.count == 105U);
  BOOST_TEST(seen.texts.at(3) == "go");
  BOOST_TEST(seen.texts.at(4) == "3001");
  BOOST_TEST(seen.texts.back() == "one");
}

// Turn follows turn, so that the session never rests.
BOOST_FIXTURE_TEST_CASE(events_that_no_run_reads_any_more_are_forgotten,
                        long_session) {
  stage on(options());
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
  // Under way is the last one: of the others the newest few events are left.
  const auto before = read();
  BOOST_TEST(
    on.sessions().get(here, {.num_recent_events = 150}).value().events().size()
    == 150U);
  BOOST_TEST(read() - before > 90U);
  model->answer("ok");
  for (auto& each : runs)
    BOOST_TEST(code_of(each.wait()) == "ok");
}

// A run that reads all waits for its turn behind others that do not.
BOOST_FIXTURE_TEST_CASE(what_waiting_runs_read_is_kept_for_them, long_session) {
  stage on(options());
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
    BOOST_TEST(code_of(each->wait()) == "ok");
  BOOST_TEST(newest.count == 1'001U);
  BOOST_TEST(newest.first == 1'203U);
  BOOST_TEST(all.first == 1U);
  BOOST_TEST(all.count == 2'205U);
}

// -- over SQLite -------------------------------------------------------------

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
  options.custom_store
    = std::make_shared<staged_store>(open_store(address, {}).value(), script);
  stage on(std::move(options));
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
