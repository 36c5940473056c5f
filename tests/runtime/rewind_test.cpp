// Rewinds of sessions: the restored keys, the live events, and the histories
// that runs read afterwards.

#include "troupe/core/rewind.hpp"

#include "troupe/agents/summary.hpp"

#include "counting.hpp"
#include "pause_fixture.hpp"
#include "rewind_steps.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <future>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(rewinds, *boost::unit_test::timeout(120))

namespace {

std::vector<std::string> live_texts(runtime_fixture& on,
                                    const session_key& key = here) {
  std::vector<std::string> all;
  for (const auto events = on.events(key).live(); const auto& said : events)
    all.push_back(said->text());
  return all;
}

std::string lines(const std::vector<std::string>& texts) {
  std::string all;
  for (const auto& each : texts)
    all += each + ' ';
  return all;
}

/// Runs an agent that answers with all that its model sees.
std::string seen_by_a_model(agent_fixture& on, const session_key& key = here) {
  std::string seen;
  const auto model = std::make_shared<made_model>(
    [&seen](const model_request& request, const model_reply& reply) {
      for (const auto& each : request.contents)
        seen += each->text() + ' ';
      reply(model_response(text("seen")));
    });
  on.runtime.run(asks("a", model), key, "now").wait().value();
  return seen;
}

/// A tool that stays for a while after its run was cancelled.
struct stubborn_tool {
  tool made() {
    return tool({.name = "stays",
                 .run = [this](const json&, tool_context& context) -> json {
                   const std::stop_callback asked(
                     context.stop(), [this] { asked_to_stop.add(); });
                   entered.add();
                   leave.get_future().wait();
                   return "left";
                 }});
  }

  tally entered;
  tally asked_to_stop;
  std::promise<void> leave;
};

} // namespace

BOOST_DATA_TEST_CASE(a_rewind_restores_keys_and_hides_events,
                     both,
                     over_a_store) {
  const staged_place place;
  runtime_fixture on(options_of(place, over_a_store));
  on.open("s", {{"n", 1}, {"first", true}});
  on.append(here, says_so("one", {{"n", 2}, {"kept", json{{"x", nullptr}}}}));
  on.append(here, says_so("two", {{"first", nullptr}, {"kept", nullptr}}));
  on.append(here,
            operate({operation_on("n", "add", 5)},
                    {{"late", 1}, {"user:theme", "dark"}, {"app:total", 3}}));

  const auto done = back_to(on, 1);
  BOOST_TEST(done.to == 1U);
  BOOST_TEST(done.revision == 4U);
  BOOST_TEST(done.event->author == "user");
  BOOST_TEST(done.event->actions.state_delta.to_json()
             == json({{"first", true},
                      {"kept", {{"x", nullptr}}},
                      {"late", nullptr},
                      {"n", 2}}));
  BOOST_TEST(lines(done.kept_keys) == "app:total user:theme ");
  BOOST_TEST(on.state(here)
             == json({{"n", 2},
                      {"first", true},
                      {"kept", {{"x", nullptr}}},
                      {"user:theme", "dark"},
                      {"app:total", 3}}));
  BOOST_TEST(lines(live_texts(on)) == "one ");
  BOOST_TEST(on.events(here).size() == 4U); // Nothing is removed.

  // To the creation, and forward again.
  back_to(on, 0);
  BOOST_TEST(
    on.state(here)
    == json(
      {{"n", 1}, {"first", true}, {"user:theme", "dark"}, {"app:total", 3}}));
  BOOST_TEST(lines(live_texts(on)) == "");
  back_to(on, 3);
  BOOST_TEST(on.state(here).at("n") == 7);
  BOOST_TEST(!on.state(here).contains("kept"));
  BOOST_TEST(lines(live_texts(on)) == "one two  ");
  // Earlier revisions stay as they were.
  const auto then = on.sessions().get(here, {.at = 4}).value();
  BOOST_TEST(then.state().get<int>("n") == 2);
  BOOST_TEST(then.events().live().size() == 1U);
}

BOOST_DATA_TEST_CASE(a_run_is_taken_back_by_its_id, both, over_a_store) {
  const staged_place place;
  agent_fixture on(options_of(place, over_a_store));
  const auto agent = says("a", "hello");
  on.runtime.run(agent, here, "first").wait().value();
  on.runtime.run(agent, here, "second").wait().value();
  const auto id = on.events(here)[2]->invocation_id;
  const auto done
    = on.sessions().rewind(here, rewind_target::before_run(id)).value();
  BOOST_TEST(done.to == 2U);
  // As ADK writes it, so that its readers agree.
  BOOST_TEST(done.event->actions.extra.data().at("rewindBeforeInvocationId")
             == id);
  BOOST_TEST(lines(live_texts(on)) == "first hello ");
  // The id of a run that was taken back names no place.
  BOOST_TEST(
    code_of(on.sessions().rewind(here, rewind_target::before_run(id)).get())
    == "conflict");
  BOOST_TEST(
    code_of(on.sessions().rewind(here, rewind_target::before_run("x")).get())
    == "not_found");
}

// The events that are read behind the place keep their numbers.
BOOST_DATA_TEST_CASE(runs_are_taken_back_one_after_another,
                     both,
                     over_a_store) {
  const staged_place place;
  agent_fixture on(options_of(place, over_a_store));
  const auto agent = says("a", "hello");
  for (int count = 0; count < 6; ++count)
    on.runtime.run(agent, here, "go").wait().value();
  std::vector<std::string> runs;
  for (const auto events = on.events(here); const auto& said : events)
    if (said->author == "user")
      runs.push_back(said->invocation_id);
  const auto back_before = [&](std::size_t run) {
    return code_of(on.sessions()
                     .rewind(here, rewind_target::before_run(runs.at(run)))
                     .get());
  };
  BOOST_TEST(back_before(5) == "ok");
  BOOST_TEST(back_before(5) == "conflict");
  BOOST_TEST(back_before(4) == "ok");
  BOOST_TEST(back_before(2) == "ok");
  BOOST_TEST(back_before(3) == "conflict");
  BOOST_TEST(lines(live_texts(on)) == "go hello go hello ");
  const auto then
    = on.sessions().get(here, {.num_recent_events = 3, .at = 8}).value();
  BOOST_TEST(then.events().number(0) == 6U);
}

// A run of another process may be active: what it does next would follow on a
// conversation that is gone.
BOOST_AUTO_TEST_CASE(a_run_of_another_process_ends_with_its_message) {
  const staged_place place;
  agent_fixture on(place.options());
  runtime_fixture other(place.options());
  const auto model = std::make_shared<held_model>();
  auto run = on.runtime.run(asks("a", model), here, "go");
  model->asked.await(1);
  back_to(other, 0);
  model->answer("late");
  BOOST_TEST(code_of(run.wait().get()) == "cancelled");
  BOOST_TEST(lines(live_texts(other)) == "");
  BOOST_TEST(lines(live_texts(on)) == "");
}

BOOST_DATA_TEST_CASE(models_see_the_events_that_are_left, both, over_a_store) {
  const staged_place place;
  agent_fixture on(options_of(place, over_a_store));
  for (const auto* const words : {"one", "two", "three"})
    on.append(here, says_so(words));
  back_to(on, 1);
  BOOST_TEST(seen_by_a_model(on) == "one now ");
  back_to(on, 3); // Forward again.
  BOOST_TEST(seen_by_a_model(on) == "one two three now ");
}

// Taken-back events do not count among the newest N.
BOOST_DATA_TEST_CASE(an_agent_reads_the_newest_events_that_are_left,
                     both,
                     over_a_store) {
  const staged_place place;
  agent_fixture on(options_of(place, over_a_store));
  for (int count = 1; count <= 60; ++count)
    on.append(here, says_so(std::to_string(count)));
  back_to(on, 3);
  std::string seen;
  std::uint64_t older = 0;
  const auto look = [&](invocation_context& context) -> agent_run {
    for (const auto& said : context.events())
      seen += said->text() + ' ';
    const auto page
      = co_await context.events_before(context.first_revision(), 10);
    for (const auto& said : page)
      seen += '<' + said->text() + "> ";
    older = page.first_number();
  };
  const auto reader
    = custom({.name = "a", .run = look, .reads = history_extent::newest(2)});
  on.runtime.run(reader, here, "now").wait().value();
  BOOST_TEST(seen == "2 3 now <1> ");
  BOOST_TEST(older == 1U);
}

BOOST_DATA_TEST_CASE(questions_die_and_open_again, both, over_a_store) {
  const staged_place place;
  pause_fixture on(options_of(place, over_a_store));
  const auto root = one_call("a", pay());
  on.go(root);
  const auto asked = on.fetch(here).revision();
  const auto question = on.waits.at(0);
  on.answer(root, yes);
  BOOST_TEST(on.state(here).at("paid") == 1);
  BOOST_TEST(on.sessions().open_calls(here).value().empty());

  // To the moment of the question: it waits again, and can be answered.
  back_to(on, asked);
  BOOST_TEST(!on.state(here).contains("paid"));
  const auto open = on.sessions().open_calls(here).value();
  BOOST_TEST_REQUIRE(open.size() == 1U);
  BOOST_TEST(open[0].id == question);
  on.go(root, deny(open[0]));
  BOOST_TEST(on.sessions().open_calls(here).value().empty());

  // To before the question: it is gone.
  back_to(on, 0);
  BOOST_TEST(on.sessions().open_calls(here).value().empty());
  const auto late = on.runtime.run(root, here, allow(open[0])).wait().get();
  BOOST_TEST(code_of(late) == "invalid_argument");
  BOOST_TEST(late.error().message().find("a rewind of the session has taken")
             != std::string::npos);
}

BOOST_DATA_TEST_CASE(a_summary_that_is_taken_back_hides_nothing,
                     both,
                     over_a_store) {
  const staged_place place;
  agent_fixture on(options_of(place, over_a_store));
  on.append(here, says_so("one"));
  on.append(here, says_so("two"));
  on.append(here, make_summary_event("short"));
  std::string seen;
  const auto model = std::make_shared<made_model>(
    [&seen](const model_request& request, const model_reply& reply) {
      for (const auto& each : request.contents)
        seen += each->text() + ' ';
      reply(model_response(text("seen")));
    });
  const auto root = llm({.name = "a",
                         .model = model,
                         .include_contents = include_contents::since_summary});
  back_to(on, 2);
  on.runtime.run(root, here, "now").wait().value();
  BOOST_TEST(seen == "one two now ");
  back_to(on, 3);
  seen.clear();
  on.runtime.run(root, here, "now").wait().value();
  BOOST_TEST(seen.find("short") != std::string::npos);
  BOOST_TEST(seen.find("two") == std::string::npos);
}

BOOST_DATA_TEST_CASE(an_active_run_is_a_conflict, both, over_a_store) {
  const staged_place place;
  agent_fixture on(options_of(place, over_a_store));
  on.append(here, says_so("one"));
  const auto model = std::make_shared<held_model>();
  auto run = on.runtime.run(asks("a", model), here, "go");
  model->asked.await(1);
  const auto refused = on.sessions().rewind(here, rewind_target::to(0)).get();
  BOOST_TEST(code_of(refused) == "conflict");
  BOOST_TEST(refused.error().message().find("active run") != std::string::npos);
  model->answer("done");
  run.wait().value();
  back_to(on, 1);
  BOOST_TEST(lines(live_texts(on)) == "one ");
}

// One run is active, and one waits for its turn.
BOOST_DATA_TEST_CASE(a_rewind_cancels_the_runs_of_its_session,
                     both,
                     over_a_store) {
  const staged_place place;
  agent_fixture on(options_of(place, over_a_store));
  on.append(here, says_so("one"));
  const auto model = std::make_shared<held_model>();
  auto active = on.runtime.run(asks("a", model), here, "active");
  auto queued = on.runtime.run(says("b", "never"), here, "queued");
  model->asked.await(1);
  const auto done = on.sessions()
                      .rewind(here, rewind_target::to(1), {.cancel_runs = true})
                      .value();
  BOOST_TEST(code_of(active.wait().get()) == "cancelled");
  const auto ended = queued.wait().get();
  BOOST_TEST(code_of(ended) == "cancelled");
  BOOST_TEST(ended.error().message() == "session press/ann/s is rewound");
  // The message of the active run was stored, and is taken back.
  BOOST_TEST(done.revision == 3U);
  BOOST_TEST(lines(live_texts(on)) == "one ");
  on.runtime.run(says("c", "hello"), here, "next").wait().value();
  BOOST_TEST(lines(live_texts(on)) == "one next hello ");
}

// The first run ignores that it is cancelled for a while. One that interleaves
// comes meanwhile.
BOOST_DATA_TEST_CASE(no_run_starts_while_a_rewind_waits_for_the_end,
                     both,
                     over_a_store) {
  const staged_place place;
  agent_fixture on(options_of(place, over_a_store));
  on.append(here, says_so("one"));
  stubborn_tool stays;
  auto first = on.runtime.run(one_call("a", stays.made()), here, "go");
  stays.entered.await(1);
  answers<rewound_session> told;
  on.sessions()
    .rewind(here, rewind_target::to(1), {.cancel_runs = true})
    .then(told.next());
  stays.asked_to_stop.await(1);
  const auto model = std::make_shared<held_model>();
  run_options beside;
  beside.policy = run_policy::interleave;
  auto second = on.runtime.run(asks("b", model), here, "beside", beside);
  // The session takes its letters in order, so this comes behind the start.
  on.fetch(here);
  stays.leave.set_value();
  const auto done = told.await();
  BOOST_TEST(code_of(done.front()) == "ok");
  BOOST_TEST(code_of(first.wait().get()) == "cancelled");
  BOOST_TEST(code_of(second.wait().get()) == "cancelled");
  BOOST_TEST(lines(live_texts(on)) == "one ");
}

// Nothing could be gained by cancelling: the rewind fails anyway, or has taken
// effect already.
BOOST_DATA_TEST_CASE(a_rewind_that_cannot_fit_cancels_no_run,
                     both,
                     over_a_store) {
  const staged_place place;
  agent_fixture on(options_of(place, over_a_store));
  on.append(here, says_so("one"));
  on.append(here, says_so("two"));
  const auto to_one = [&](std::uint64_t expected) {
    return on.sessions()
      .rewind(here,
              rewind_target::to(1),
              {.expected_revision = expected, .cancel_runs = true})
      .get();
  };
  const auto first = to_one(2).value();
  const auto model = std::make_shared<held_model>();
  auto run = on.runtime.run(asks("a", model), here, "go");
  model->asked.await(1);
  BOOST_TEST(to_one(2).value().event->id == first.event->id);
  BOOST_TEST(code_of(to_one(3)) == "conflict"); // The run's message is the 4th.
  BOOST_TEST(
    code_of(on.sessions()
              .rewind(here, rewind_target::to(9), {.cancel_runs = true})
              .get())
    == "not_found");
  model->answer("done");
  run.wait().value();
  BOOST_TEST(lines(live_texts(on)) == "one go done ");
}

BOOST_DATA_TEST_CASE(a_rewind_that_would_cancel_finds_no_run,
                     both,
                     over_a_store) {
  const staged_place place;
  runtime_fixture on(options_of(place, over_a_store));
  const rewind_options cancelling{.cancel_runs = true};
  const auto to_start = [&] {
    return code_of(
      on.sessions().rewind(here, rewind_target::to(0), cancelling).get());
  };
  BOOST_TEST(to_start() == "not_found");
  on.open("s");
  BOOST_TEST(to_start() == "invalid_argument"); // Nothing to take back.
  on.append(here, says_so("one"));
  BOOST_TEST(to_start() == "ok");
}

// The removal ends the wait, too.
BOOST_DATA_TEST_CASE(a_session_is_removed_while_a_rewind_waits_for_its_run,
                     both,
                     over_a_store) {
  const staged_place place;
  agent_fixture on(options_of(place, over_a_store));
  on.append(here, says_so("one"));
  stubborn_tool stays;
  auto run = on.runtime.run(one_call("a", stays.made()), here, "go");
  stays.entered.await(1);
  answers<rewound_session> told;
  on.sessions()
    .rewind(here, rewind_target::to(1), {.cancel_runs = true})
    .then(told.next());
  stays.asked_to_stop.await(1);
  const bool is_removed = on.sessions().remove(here).value();
  stays.leave.set_value();
  BOOST_TEST(is_removed);
  BOOST_TEST(code_of(told.await().front()) == "not_found");
  BOOST_TEST(code_of(run.wait().get()) == "cancelled");
}

BOOST_DATA_TEST_CASE(a_rewind_takes_effect_once, both, over_a_store) {
  const staged_place place;
  runtime_fixture on(options_of(place, over_a_store));
  on.open("s");
  on.append(here, says_so("one", {{"n", 1}}));
  on.append(here, says_so("two", {{"n", 2}}));
  const auto target = rewind_target::to(1);
  const rewind_options at_two{.expected_revision = 2};
  const auto first = on.sessions().rewind(here, target, at_two).value();
  on.append(here, says_so("three"));
  const auto again = on.sessions().rewind(here, target, at_two).value();
  BOOST_TEST(again.event->id == first.event->id);
  BOOST_TEST(on.fetch(here).revision() == 4U);
  // Another place from the same revision is another rewind.
  BOOST_TEST(
    code_of(on.sessions().rewind(here, rewind_target::to(0), at_two).get())
    == "conflict");
  BOOST_TEST(
    code_of(on.sessions().rewind(here, target, {.expected_revision = 9}).get())
    == "conflict");
}

// Another program makes the session again, up to the same revision, before the
// rewind is stored.
BOOST_AUTO_TEST_CASE(a_rewind_takes_back_no_events_of_another_session) {
  const staged_place place;
  runtime_fixture beside(place.beside());
  const auto make = [&] {
    beside.open("s");
    beside.append(here, says_so("one"));
    beside.append(here, says_so("two"));
  };
  make();
  std::atomic<bool> is_armed = true;
  place.script->each_commit([&] {
    if (is_armed.exchange(false)) {
      beside.sessions().remove(here).value();
      make();
    }
    return store_script::step::work;
  });
  runtime_fixture on(place.options());
  const auto answer = on.sessions().rewind(here, rewind_target::to(1)).get();
  BOOST_TEST(!is_armed);
  BOOST_TEST(code_of(answer) == "conflict");
  BOOST_TEST(lines(live_texts(on)) == "one two ");
}

BOOST_DATA_TEST_CASE(a_place_must_exist, both, over_a_store) {
  const staged_place place;
  runtime_fixture on(options_of(place, over_a_store));
  const auto to = [&](std::uint64_t revision) {
    return on.sessions().rewind(here, rewind_target::to(revision)).get();
  };
  BOOST_TEST(code_of(to(0)) == "not_found");
  on.open("s");
  BOOST_TEST(code_of(to(0)) == "invalid_argument"); // Nothing to take back.
  on.append(here, says_so("one"));
  BOOST_TEST(code_of(to(1)) == "invalid_argument");
  BOOST_TEST(code_of(to(2)) == "not_found");
  BOOST_TEST(on.fetch(here).revision() == 1U);
}

BOOST_DATA_TEST_CASE(rewinds_beside_appends_are_exact, both, over_a_store) {
  const staged_place place;
  runtime_fixture on(options_of(place, over_a_store));
  on.open("s");
  on.append(here, says_so("first", {{"n", 0}}));
  on.append(here, counting());
  answers<event_ptr> appended;
  for (int count = 0; count < 50; ++count)
    on.sessions().append_event(here, counting()).then(appended.next());
  const auto done = back_to(on, 1);
  appended.await();
  const auto now = on.fetch(here);
  // The appends behind the rewind count on from its value.
  const auto behind = now.revision() - done.revision;
  BOOST_TEST(now.state().get<std::uint64_t>("n") == behind);
  BOOST_TEST(now.state().get<int>("user:n") == 51);
  BOOST_TEST(now.events().live().size() == 1 + behind);
}

BOOST_AUTO_TEST_CASE(a_rewind_is_no_event_to_append) {
  runtime_fixture on;
  on.open("s");
  on.append(here, says_so("one"));
  event marker;
  take_back(marker, 1);
  BOOST_TEST(on.append(here, marker) == "invalid_argument");
  marker.actions.extra = json{{"rewindBeforeInvocationId", "i"}};
  BOOST_TEST(on.append(here, marker) == "invalid_argument");
  const auto rewinds
    = custom("a", [](invocation_context& context) -> agent_run {
        event said;
        take_back(said, 1);
        co_await context.emit(std::move(said));
      });
  BOOST_TEST(code_of(on.runtime.run(rewinds, here, "go").wait().get())
             == "invalid_argument");
  BOOST_TEST(on.events(here).live().size() == on.events(here).size());
}

BOOST_DATA_TEST_CASE(a_past_with_rewinds_of_adk_is_read_as_adk_does,
                     both,
                     over_a_store) {
  const staged_place place;
  agent_fixture on(options_of(place, over_a_store));
  const session_key imported("press", "ann", "imported");
  create_request wanted(imported);
  for (const auto* const run : {"i1", "i2", "i3"}) {
    auto said = says_so(run);
    said.invocation_id = run;
    wanted.events.push_back(std::move(said));
  }
  auto back = change(json::object());
  back.invocation_id = "i4";
  back.actions.extra = json{{"rewindBeforeInvocationId", "i2"}};
  wanted.events.push_back(std::move(back));
  on.sessions().create(wanted).value();
  BOOST_TEST(lines(live_texts(on, imported)) == "i1 ");
  BOOST_TEST(seen_by_a_model(on, imported) == "i1 now ");
}

BOOST_AUTO_TEST_CASE(runs_that_lost_only_their_end_are_named) {
  runtime_fixture on;
  on.open("s");
  const auto by = [&](const std::string& author, const std::string& run) {
    auto said = says_so(author);
    said.author = author;
    said.invocation_id = run;
    on.append(here, said);
  };
  by("user", "e-1");
  by("user", "e-2");
  by("a", "e-1");
  by("a", "e-2");
  on.append(here, says_so("alone"));
  const auto done
    = on.sessions().rewind(here, rewind_target::before_run("e-2")).value();
  BOOST_TEST(lines(done.cut_runs) == "e-1 ");
}

BOOST_DATA_TEST_CASE(followers_are_told_of_a_rewind, both, over_a_store) {
  const staged_place place;
  runtime_fixture on(options_of(place, over_a_store));
  on.open("s");
  auto news = on.sessions().follow(here, {.from = 0});
  on.append(here, says_so("one"));
  back_to(on, 0);
  on.append(here, says_so("two"));
  BOOST_TEST(news.next().value()->text() == "one");
  BOOST_TEST(taken_back_by(*news.next().value()).value() == 1U);
  BOOST_TEST(news.next().value()->text() == "two");
}

BOOST_AUTO_TEST_SUITE_END()
