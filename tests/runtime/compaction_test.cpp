// Summaries at the end of runs, and the history that later runs read.

#include "troupe/agents/compaction.hpp"

#include "troupe/agents/summary.hpp"

#include "counting.hpp"
#include "pause_fixture.hpp"
#include "staged_store.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(compaction, *boost::unit_test::timeout(120))

namespace {

const auto both = data::make({false, true});

/// Keeps the warnings of a runtime.
class warnings {
public:
  std::function<void(const std::string&)> receiver() const {
    return [kept = kept_](const std::string& warning) {
      const std::lock_guard guard(kept->mutex);
      kept->all.push_back(warning);
    };
  }

  std::vector<std::string> all() const {
    const std::lock_guard guard(kept_->mutex);
    return kept_->all;
  }

private:
  struct kept {
    std::mutex mutex;
    std::vector<std::string> all;
  };

  std::shared_ptr<kept> kept_ = std::make_shared<kept>();
};

/// The material of all summaries: `"S1|3.4."` is that of the second one.
using materials = std::shared_ptr<std::vector<std::string>>;

/// Writes the summaries `S1`, `S2`, ….
struct counting_summarizer {
  materials made = std::make_shared<std::vector<std::string>>();

  std::optional<content> operator()(const summary_request& wanted) const {
    std::string material;
    for (const auto& each : wanted.former)
      material += each.text() + "|";
    for (const auto& said : wanted.events)
      material += said->text();
    made->push_back(std::move(material));
    return content("", {part("S" + std::to_string(made->size()))});
  }
};

compaction_options every(std::uint64_t runs,
                         const counting_summarizer& by = {}) {
  compaction_options chosen;
  chosen.compaction_interval = runs;
  chosen.summarizer = by;
  return chosen;
}

runtime_options options_of(const staged_place& place,
                           bool over_a_store,
                           compaction_options chosen) {
  auto options = over_a_store ? place.options() : runtime_options();
  options.events_kept = 4; // The store has to be asked for most events.
  options.compaction = std::move(chosen);
  return options;
}

/// Runs an agent that answers "." and returns the texts that its model sees.
std::string seen_by(runtime_fixture& on,
                    const std::string& message,
                    const session_key& key = here,
                    include_contents which = include_contents::all) {
  std::string seen;
  const auto model = std::make_shared<made_model>(
    [&seen](const model_request& request, const model_reply& reply) {
      for (const auto& each : request.contents)
        seen += each->text() + ' ';
      reply(model_response(text(".")));
    });
  const auto root
    = llm({.name = "a", .model = model, .include_contents = which});
  on.runtime.run(root, key, message).wait().value();
  const std::string hint = "For context, a summary of what came before:";
  for (auto at = seen.find(hint); at != std::string::npos; at = seen.find(hint))
    seen.erase(at, hint.size());
  return seen;
}

} // namespace

BOOST_DATA_TEST_CASE(a_summary_replaces_the_events_that_it_covers,
                     both,
                     over_a_store) {
  const staged_place place;
  const counting_summarizer by;
  agent_fixture on(options_of(place, over_a_store, every(2, by)));
  BOOST_TEST(seen_by(on, "1") == "1 ");
  BOOST_TEST(seen_by(on, "2") == "1 . 2 ");
  BOOST_TEST(seen_by(on, "3") == "S1 3 ");
  BOOST_TEST(seen_by(on, "4") == "S1 3 . 4 ");
  BOOST_TEST(seen_by(on, "5", here, include_contents::since_summary)
             == "S2 5 ");
  BOOST_TEST(*by.made == std::vector<std::string>({"1.2.", "S1|3.4."}),
             boost::test_tools::per_element());
  const auto all = on.events(here);
  BOOST_TEST(all.size() == 12U);
  const auto made = summary_of(*all[4]);
  BOOST_TEST_REQUIRE(made.has_value());
  BOOST_TEST(all[4]->author == "user");
  BOOST_TEST((made->start_revision == 1U));
  BOOST_TEST((made->end_revision == 4U));
  BOOST_TEST((made->start_time == all[0]->timestamp));
  BOOST_TEST((made->end_time == all[3]->timestamp));
}

BOOST_AUTO_TEST_CASE(the_overlap_is_summed_up_again) {
  const staged_place place;
  const counting_summarizer by;
  auto chosen = every(2, by);
  chosen.overlap_size = 1;
  agent_fixture on(options_of(place, true, chosen));
  for (const auto* message : {"1", "2", "3", "4"})
    seen_by(on, message);
  BOOST_TEST(seen_by(on, "5") == "S2 5 ");
  BOOST_TEST(by.made->at(1) == "S1|2.3.4.");
}

// As in ADK, a summary is stored, and is no event of the run.
BOOST_AUTO_TEST_CASE(the_holder_of_a_run_gets_no_summary) {
  agent_fixture on(options_of(staged_place(), false, every(1)));
  BOOST_TEST(on.perform(says("a", "x")) == "a=x | ok");
  BOOST_TEST(on.events(on.key).size() == 3U);
}

BOOST_DATA_TEST_CASE(a_rewind_over_a_summary_revives_its_events,
                     both,
                     over_a_store) {
  const staged_place place;
  agent_fixture on(options_of(place, over_a_store, every(2)));
  seen_by(on, "1");
  seen_by(on, "2"); // Events 3 and 4; 5 is the summary.
  on.sessions().rewind(here, rewind_target::to(4)).value();
  BOOST_TEST(seen_by(on, "3") == "1 . 2 . 3 ");
  // Going forward to the summary again.
  on.sessions().rewind(here, rewind_target::to(5)).value();
  BOOST_TEST(seen_by(on, "4") == "S1 4 ");
}

BOOST_DATA_TEST_CASE(a_rewind_into_a_summed_range_hides_the_summary,
                     both,
                     over_a_store) {
  const staged_place place;
  const counting_summarizer by;
  agent_fixture on(options_of(place, over_a_store, every(2, by)));
  seen_by(on, "1");
  seen_by(on, "2");
  seen_by(on, "3");
  on.sessions().rewind(here, rewind_target::to(2)).value();
  BOOST_TEST(seen_by(on, "4") == "1 . 4 ");
  // The next summary has the live events alone.
  BOOST_TEST(seen_by(on, "5") == "S2 5 ");
  BOOST_TEST(by.made->at(1) == "1.4.");
}

BOOST_DATA_TEST_CASE(a_fork_keeps_its_summaries, both, over_a_store) {
  const staged_place place;
  agent_fixture on(options_of(place, over_a_store, every(2)));
  seen_by(on, "1");
  seen_by(on, "2");
  const auto fork = on.sessions().fork(here, {}, "fork").value().key();
  BOOST_TEST(seen_by(on, "3", fork) == "S1 3 ");
  const auto early = on.sessions().fork(here, {.at = 4}, "early").value().key();
  BOOST_TEST(seen_by(on, "3", early) == "1 . 2 . 3 ");
}

// Compaction was turned on for a session that has become long without it.
BOOST_DATA_TEST_CASE(runs_catch_up_with_a_long_session, both, over_a_store) {
  const staged_place place;
  const counting_summarizer by;
  auto chosen = every(1, by);
  chosen.request_bytes_max = 100;
  agent_fixture on(options_of(place, over_a_store, chosen));
  for (int count = 0; count < 10; ++count) {
    event said(user_text("0123456789"));
    said.author = "user"; // A line of 17 bytes.
    on.append(here, std::move(said));
  }
  seen_by(on, "1");
  seen_by(on, "2");
  BOOST_TEST(seen_by(on, "3") == "S2 1 . 2 . 3 ");
  const std::string five = "01234567890123456789012345678901234567890123456789";
  BOOST_TEST_REQUIRE(by.made->size() == 3U);
  BOOST_TEST(by.made->at(0) == five);
  BOOST_TEST(by.made->at(1) == "S1|" + five);
  BOOST_TEST(by.made->at(2) == "S2|1.2.3.");
}

// -- failures ----

BOOST_AUTO_TEST_CASE(a_summary_that_fails_fails_no_run) {
  const warnings told;
  auto chosen = every(1);
  bool works = false;
  chosen.summarizer
    = [&works](const summary_request&) -> std::optional<content> {
    if (!works)
      throw std::runtime_error("no words");
    return content("", {part("sum")});
  };
  auto options = options_of(staged_place(), false, chosen);
  options.on_warning = told.receiver();
  agent_fixture on(options);
  BOOST_TEST(seen_by(on, "1") == "1 ");
  BOOST_TEST(seen_by(on, "2") == "1 . 2 ");
  BOOST_TEST_REQUIRE(told.all().size() == 2U);
  BOOST_TEST(told.all()[0].find("press/ann/s was not summed up: the summarizer")
               != std::string::npos,
             told.all()[0]);
  BOOST_TEST(told.all()[0].find("no words") != std::string::npos);
  works = true;
  BOOST_TEST(seen_by(on, "3") == "1 . 2 . 3 ");
  BOOST_TEST(seen_by(on, "4") == "sum 4 ");
}

BOOST_AUTO_TEST_CASE(a_summary_without_words_hides_nothing) {
  const warnings told;
  auto chosen = every(1);
  chosen.summarizer
    = [](const summary_request&) { return std::optional(content("", {})); };
  auto options = options_of(staged_place(), false, chosen);
  options.on_warning = told.receiver();
  agent_fixture on(options);
  seen_by(on, "1");
  BOOST_TEST(seen_by(on, "2") == "1 . 2 ");
  BOOST_TEST(told.all().size() == 2U);
}

BOOST_AUTO_TEST_CASE(a_summarizer_may_want_no_summary) {
  const warnings told;
  auto chosen = every(1);
  chosen.summarizer
    = [](const summary_request&) { return std::optional<content>(); };
  auto options = options_of(staged_place(), false, chosen);
  options.on_warning = told.receiver();
  agent_fixture on(options);
  seen_by(on, "1");
  BOOST_TEST(on.events(here).size() == 2U);
  BOOST_TEST(told.all().empty());
}

BOOST_AUTO_TEST_CASE(failed_and_paused_runs_make_no_summary) {
  agent_fixture on(options_of(staged_place(), false, every(1)));
  BOOST_TEST(on.perform(fails("a")) == "| callback_failed");
  BOOST_TEST(on.events(on.key).size() == 1U);
}

// -- models ----

BOOST_AUTO_TEST_CASE(the_model_of_the_root_agent_writes_the_summary) {
  auto chosen = every(1);
  chosen.summarizer = nullptr;
  chosen.prompt = "Sum up.";
  agent_fixture on(options_of(staged_place(), false, chosen));
  std::vector<std::string> instructions;
  std::string material;
  const auto model = std::make_shared<made_model>(
    [&](const model_request& request, const model_reply& reply) {
      instructions.push_back(request.system_instruction);
      material = request.contents.front()->text();
      model_response piece(text("piece"));
      piece.partial = true;
      reply(piece);
      model_response whole(text("whole"));
      whole.extra = json{{"usageMetadata", {{"totalTokenCount", 7}}}};
      reply(whole);
    });
  std::string pieces;
  auto run = on.runtime.run(asks("a", model, "Be kind."), here, "hello");
  while (auto next = run.next().value())
    pieces += (next)->text() + ' ';
  // No piece of the summary.
  BOOST_TEST(pieces == "piece whole ");
  BOOST_TEST(instructions.size() == 2U);
  BOOST_TEST(instructions.back() == "Sum up.");
  BOOST_TEST(material == "user: hello\na: whole\n");
  const auto said = on.events(here).back();
  BOOST_TEST(summary_of(*said)->content.text() == "whole");
  BOOST_TEST(said->extra.data()
             == json({{"usageMetadata", {{"totalTokenCount", 7}}}}));
}

BOOST_AUTO_TEST_CASE(without_a_model_there_is_a_warning) {
  const warnings told;
  auto chosen = every(1);
  chosen.summarizer = nullptr;
  auto options = options_of(staged_place(), false, chosen);
  options.on_warning = told.receiver();
  agent_fixture on(options);
  BOOST_TEST(on.perform(says("a", "x")) == "a=x | ok");
  BOOST_TEST_REQUIRE(told.all().size() == 1U);
  BOOST_TEST(told.all()[0].find("agent 'a' has no model") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_summary_is_a_model_call_of_its_run) {
  const warnings told;
  auto chosen = every(1);
  chosen.summarizer = nullptr;
  auto options = options_of(staged_place(), false, chosen);
  options.on_warning = told.receiver();
  agent_fixture on(options);
  BOOST_TEST(on.perform(asks("a", echo(), "x"), {.model_calls_max = 1})
             == "a=x | ok");
  BOOST_TEST(told.all().size() == 1U);
  BOOST_TEST(on.events(on.key).size() == 2U);
}

// -- runs beside each other ----

BOOST_AUTO_TEST_CASE(a_cancelled_summary_leaves_the_outcome_of_the_run) {
  const warnings told;
  auto chosen = every(1);
  const auto held = std::make_shared<held_model>();
  chosen.summarizer = nullptr;
  chosen.model = held;
  auto options = options_of(staged_place(), false, chosen);
  options.on_warning = told.receiver();
  agent_fixture on(options);
  auto run = on.runtime.run(says("a", "x"), here, "go");
  held->asked.await(1);
  run.cancel();
  BOOST_TEST(code_of(run.wait().get()) == "ok");
  BOOST_TEST(on.events(here).size() == 2U);
  BOOST_TEST(told.all().empty());
  held->forget();
}

// The next run in the queue reads the summary.
BOOST_AUTO_TEST_CASE(a_waiting_run_starts_behind_the_summary) {
  auto chosen = every(1);
  const auto held = std::make_shared<held_model>();
  chosen.summarizer = nullptr;
  chosen.model = held;
  agent_fixture on(options_of(staged_place(), false, chosen));
  auto first = on.runtime.run(says("a", "x"), here, "one");
  held->asked.await(1);
  std::string seen;
  const auto model = std::make_shared<made_model>(
    [&seen](const model_request& request, const model_reply& reply) {
      for (const auto& each : request.contents)
        seen += *each->parts.back().text() + ' ';
      reply(model_response(text(".")));
    });
  auto second = on.runtime.run(asks("b", model), here, "two");
  held->answer("sum");
  first.wait().value();
  held->asked.await(2);
  held->answer("sum");
  second.wait().value();
  BOOST_TEST(seen == "sum two ");
}

// Both sum up the same events; the second one finds the summary of the first.
BOOST_AUTO_TEST_CASE(of_two_summaries_at_once_one_is_dropped) {
  auto chosen = every(1);
  tally asked;
  std::vector<model_reply> replies;
  chosen.summarizer = nullptr;
  chosen.model = std::make_shared<made_model>(
    [&](const model_request&, const model_reply& reply) {
      replies.push_back(reply);
      asked.add();
    });
  agent_fixture on(options_of(staged_place(), false, chosen));
  const run_options beside{.policy = run_policy::interleave};
  auto first = on.runtime.run(says("a", "x"), here, "one", beside);
  asked.await(1);
  auto second = on.runtime.run(says("b", "y"), here, "two", beside);
  asked.await(2);
  replies[0](model_response(text("first")));
  first.wait().value();
  replies[1](model_response(text("second")));
  second.wait().value();
  std::vector<std::string> summaries;
  for (const auto& said : on.events(here))
    if (const auto made = summary_of(*said))
      summaries.push_back(made->content.text());
  BOOST_TEST(summaries == std::vector<std::string>{"first"},
             boost::test_tools::per_element());
}

// -- the threshold ----

BOOST_DATA_TEST_CASE(a_long_prompt_makes_a_summary, both, over_a_store) {
  const staged_place place;
  compaction_options chosen;
  chosen.token_threshold = 100;
  chosen.event_retention_size = 2;
  chosen.summarizer = counting_summarizer();
  agent_fixture on(options_of(place, over_a_store, chosen));
  std::uint64_t tokens = 10;
  std::string seen;
  const auto model = std::make_shared<made_model>(
    [&](const model_request& request, const model_reply& reply) {
      seen.clear();
      for (const auto& each : request.contents)
        seen += *each->parts.back().text() + ' ';
      model_response whole(text("."));
      whole.extra = json{{"usageMetadata", {{"promptTokenCount", tokens}}}};
      reply(whole);
    });
  const auto say = [&](const std::string& message) {
    on.runtime.run(asks("a", model), here, message).wait().value();
    return seen;
  };
  say("1");
  tokens = 100;
  BOOST_TEST(say("2") == "1 . 2 ");
  tokens = 10;
  BOOST_TEST(say("3") == "S1 2 . 3 ");
  BOOST_TEST(say("4") == "S1 2 . 3 . 4 ");
}

// No summary is due, so the run reads no events that only a summary needs.
BOOST_AUTO_TEST_CASE(a_short_prompt_reads_no_older_events) {
  const staged_place place;
  compaction_options chosen;
  chosen.token_threshold = 1'000;
  chosen.summarizer = counting_summarizer();
  agent_fixture on(options_of(place, true, chosen));
  for (int count = 0; count < 300; ++count)
    on.append(here, {{"n", count}});
  const auto model = std::make_shared<made_model>(
    [](const model_request&, const model_reply& reply) {
      model_response whole(text("."));
      whole.extra = json{{"usageMetadata", {{"promptTokenCount", 10}}}};
      reply(whole);
    });
  const auto root = llm(
    {.name = "a", .model = model, .include_contents = include_contents::none});
  const auto before = place.script->events_read.load();
  on.runtime.run(root, here, "go").wait().value();
  BOOST_TEST(place.script->events_read.load() < before + 100);
}

BOOST_AUTO_TEST_CASE(a_bad_compaction_is_refused) {
  runtime_options options;
  options.compaction.emplace();
  BOOST_TEST(code_of(runtime::open(std::move(options))) == "invalid_argument");
}

BOOST_AUTO_TEST_SUITE_END()
