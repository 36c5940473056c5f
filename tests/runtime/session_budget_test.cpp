// The budget of tokens of a session.

#include "troupe/agents/summary.hpp"

#include "counting.hpp"
#include "pause_fixture.hpp"
#include "rewind_steps.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(session_budgets, *boost::unit_test::timeout(120))

namespace {

/// A model that says "x" and uses ten tokens.
model_ptr ten() {
  return std::make_shared<made_model>(
    [](const model_request&, const model_reply& reply) {
      model_response whole(text("x"));
      whole.extra = json{{"usageMetadata", {{"totalTokenCount", 10}}}};
      reply(whole);
    });
}

std::string
say(runtime_fixture& on, std::uint64_t budget, const session_key& key = here) {
  auto run = on.runtime.run(llm({.name = "a",
                                 .model = ten(),
                                 .include_contents = include_contents::none}),
                            key,
                            "go",
                            {.session_tokens_max = budget});
  return agent_fixture::follow(run);
}

/// Appends events that use one token each.
void use(runtime_fixture& on, int count) {
  for (int index = 0; index < count; ++index) {
    event said(text("x"));
    said.author = "a";
    said.extra = json{{"usageMetadata", {{"totalTokenCount", 1}}}};
    on.append(here, std::move(said));
  }
}

} // namespace

BOOST_DATA_TEST_CASE(tokens_of_earlier_runs_count, both, over_a_store) {
  const staged_place place;
  agent_fixture on(options_of(place, over_a_store));
  for (int count = 0; count < 5; ++count)
    BOOST_TEST(say(on, 50) == "a=x | ok");
  BOOST_TEST(say(on, 50) == "| limit_exceeded");
  BOOST_TEST(agent_fixture::last_reason()
             == "session press/ann/s has used 50 tokens, and its budget is 50; "
                "raise session_tokens_max if it needs more");
  BOOST_TEST(say(on, 51) == "a=x | ok");
}

BOOST_DATA_TEST_CASE(a_rewind_gives_tokens_back, both, over_a_store) {
  const staged_place place;
  agent_fixture on(options_of(place, over_a_store));
  for (int count = 0; count < 5; ++count)
    say(on, 50);
  on.sessions().rewind(here, rewind_target::to(4)).value();
  for (int count = 0; count < 3; ++count)
    BOOST_TEST(say(on, 50) == "a=x | ok");
  BOOST_TEST(say(on, 50) == "| limit_exceeded");
}

BOOST_DATA_TEST_CASE(a_fork_has_used_the_tokens_of_its_past,
                     both,
                     over_a_store) {
  const staged_place place;
  agent_fixture on(options_of(place, over_a_store));
  for (int count = 0; count < 5; ++count)
    say(on, 50);
  const auto fork = on.sessions().fork(here, {.at = 8}, "fork").value().key();
  BOOST_TEST(say(on, 50, fork) == "a=x | ok");
  BOOST_TEST(say(on, 50, fork) == "| limit_exceeded");
}

BOOST_AUTO_TEST_CASE(a_restarted_program_counts_again) {
  const staged_place place;
  {
    agent_fixture on(options_of(place, true));
    for (int count = 0; count < 5; ++count)
      say(on, 50);
  }
  runtime_fixture on(options_of(place, true));
  BOOST_TEST(say(on, 50) == "| limit_exceeded");
}

// A page of events knows only the rewinds inside it. They may have taken back
// events of older pages.
BOOST_AUTO_TEST_CASE(a_restarted_program_leaves_out_events_taken_back) {
  const staged_place place;
  {
    agent_fixture on(options_of(place, true));
    use(on, 300);
    back_to(on, 10);
    use(on, 100);
  }
  runtime_fixture on(options_of(place, true));
  BOOST_TEST(say(on, 110) == "| limit_exceeded");
  BOOST_TEST(say(on, 111) == "a=x | ok");
}

// The rewind to 5 has no effect any more, although a page has it.
BOOST_AUTO_TEST_CASE(a_rewind_that_was_taken_back_gives_no_tokens_back) {
  const staged_place place;
  {
    agent_fixture on(options_of(place, true));
    use(on, 20);
    back_to(on, 5); // Event 21.
    use(on, 4);
    back_to(on, 15); // Event 26, going forward.
  }
  runtime_fixture on(options_of(place, true));
  BOOST_TEST(say(on, 15) == "| limit_exceeded");
  BOOST_TEST(say(on, 16) == "a=x | ok");
}

// This program has counted the session, and does not have the rewind in memory.
BOOST_AUTO_TEST_CASE(a_rewind_of_another_program_gives_tokens_back) {
  const staged_place place;
  agent_fixture on(options_of(place, true));
  for (int count = 0; count < 5; ++count)
    say(on, 50);
  runtime_fixture other(options_of(place, true));
  back_to(other, 4);
  for (int count = 0; count < 100; ++count)
    other.append(here, {{"n", count}});
  on.append(here, {{"n", 100}}); // Loads the newest events alone.
  for (int count = 0; count < 3; ++count)
    BOOST_TEST(say(on, 50) == "a=x | ok");
  BOOST_TEST(say(on, 50) == "| limit_exceeded");
}

BOOST_DATA_TEST_CASE(a_session_that_is_created_again_has_used_nothing,
                     both,
                     over_a_store) {
  const staged_place place;
  agent_fixture on(options_of(place, over_a_store));
  for (int count = 0; count < 5; ++count)
    say(on, 50);
  on.sessions().remove(here).value();
  on.open("s");
  // As many events as were counted.
  for (int count = 0; count < 20; ++count)
    on.append(here, {{"n", count}});
  for (int count = 0; count < 5; ++count)
    BOOST_TEST(say(on, 50) == "a=x | ok");
  BOOST_TEST(say(on, 50) == "| limit_exceeded");
}

BOOST_AUTO_TEST_CASE(all_lanes_of_a_run_count) {
  agent_fixture on;
  std::vector<agent> all;
  for (int count = 0; count < 5; ++count)
    all.push_back(asks("a" + std::to_string(count), ten()));
  BOOST_TEST(on.perform(sequential("all", all), {.session_tokens_max = 25})
             == "a0=x a1=x a2=x | limit_exceeded");
  BOOST_TEST(on.perform(sequential("all", all), {.session_tokens_max = 30})
             == "| limit_exceeded");
}

// The events of earlier runs are read once, and not for each run.
BOOST_AUTO_TEST_CASE(a_count_is_continued_by_the_next_run) {
  const staged_place place;
  agent_fixture on(options_of(place, true));
  for (int count = 0; count < 300; ++count)
    on.append(here, {{"n", count}});
  say(on, 50);
  const auto before = place.script->events_read.load();
  say(on, 50);
  BOOST_TEST(place.script->events_read.load() < before + 10);
}

BOOST_AUTO_TEST_SUITE_END()
