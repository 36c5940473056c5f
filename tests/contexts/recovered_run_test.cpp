// Places of events, and the parts that a run has left at them.

#include "troupe/contexts/lanes/recovered_run.hpp"

#include "troupe/contexts/lanes/event_place.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;

BOOST_AUTO_TEST_SUITE(places_of_recovered_runs)

namespace {

// The history of a session with one run, `r`.
class run_history {
public:
  event& add(const std::string& place,
             const std::string& words = {},
             agent_step step = agent_step::body) {
    event made;
    if (!words.empty())
      made.content = text("{}", words);
    made.invocation_id = "r";
    made.author = place.empty() ? "plugin" : std::string(name_at(place));
    set_place(made, place, step);
    all_.push_back(std::move(made));
    return all_.back();
  }

  recovered_run read() const {
    event_log log;
    for (const auto& each : all_)
      log.push_back(std::make_shared<const event>(each));
    return {log.slice(), "r"};
  }

private:
  std::vector<event> all_;
};

std::string joined(const std::vector<std::string>& all) {
  std::string line;
  for (const auto& each : all)
    line += each + " ";
  return line;
}

/// `own first-last`, with the places below: `2 1-4 a/x@1 a/y@1 `.
std::string shown(const recovered_run& run, const std::string& place) {
  const auto* part = run.at(place);
  return part == nullptr
           ? "none"
           : std::to_string(part->own.size()) + " "
               + std::to_string(part->first) + "-" + std::to_string(part->last)
               + " " + joined(part->below);
}

} // namespace

// -- places ----

BOOST_AUTO_TEST_CASE(places_are_paths) {
  BOOST_TEST(place_below("", "a", 1) == "a@1");
  BOOST_TEST(place_below("a@1", "b", 12) == "a@1/b@12");
  BOOST_TEST(place_behind("a@1/b@2", 3, "c") == "a@1/b@2.3/c@1");
  BOOST_TEST(place_of_attempt("w@1/n@3", 1) == "w@1/n@3");
  BOOST_TEST(place_of_attempt("w@1/n@3", 2) == "w@1/n@3~2");
  BOOST_TEST(name_at("a@1") == "a");
  BOOST_TEST(name_at("a@1/b@12") == "b");
  BOOST_TEST(name_at("a@1/b@2.3/c@1") == "c");
}

BOOST_AUTO_TEST_CASE(an_event_keeps_its_first_place_and_step) {
  event said;
  BOOST_TEST(path_in(said) == "");
  BOOST_TEST((step_in(said) == agent_step::body));
  set_place(said, "", agent_step::body);
  BOOST_TEST(said.extra.is_null());
  set_place(said, "a@1", agent_step::tools);
  set_place(said, "b@1", agent_step::state);
  BOOST_TEST(path_in(said) == "a@1");
  BOOST_TEST((step_in(said) == agent_step::tools));
}

BOOST_AUTO_TEST_CASE(each_step_has_its_word) {
  for (int step = 0; step <= static_cast<int>(agent_step::failure); ++step) {
    event said;
    set_place(said, "a@1", static_cast<agent_step>(step));
    BOOST_TEST(static_cast<int>(step_in(said)) == step);
  }
  event strange;
  set_fact(strange, "step", "dancing");
  BOOST_TEST((step_in(strange) == agent_step::body));
  set_fact(strange, "step", 7);
  BOOST_TEST((step_in(strange) == agent_step::body));
}

BOOST_AUTO_TEST_CASE(facts_keep_the_other_fields) {
  event said;
  said.extra = json::object({{"errorCode", "x"}});
  set_place(said, "a@1", agent_step::failure);
  set_fact(said, "recovers", 3);
  mark_answer(said);
  BOOST_TEST(said.field("errorCode") == "x");
  BOOST_TEST(path_in(said) == "a@1");
  BOOST_TEST_REQUIRE(fact_in(said, "recovers") != nullptr);
  BOOST_TEST(*fact_in(said, "recovers") == 3);
  BOOST_TEST(is_answer(said));
  BOOST_TEST(fact_in(said, "items") == nullptr);
}

BOOST_AUTO_TEST_CASE(fields_of_another_shape_are_no_facts) {
  for (const auto* fields : {R"({"nodeInfo": 1, "customMetadata": 2})",
                             R"({"nodeInfo": [], "customMetadata": []})",
                             R"({"nodeInfo": {"path": 1},
                                 "customMetadata": {"troupe": "x"}})"}) {
    event said;
    said.extra = json::parse(fields);
    BOOST_TEST(path_in(said) == "");
    BOOST_TEST(fact_in(said, "step") == nullptr);
    BOOST_TEST(temp_names_in(said).names.empty());
    set_place(said, "a@1", agent_step::items);
    BOOST_TEST(path_in(said) == "a@1");
    BOOST_TEST((step_in(said) == agent_step::items));
  }
}

BOOST_AUTO_TEST_CASE(names_of_keys_are_written_with_their_lane) {
  event said;
  set_temp_names(said, {.lane = "m@1/w@2", .names = {}});
  BOOST_TEST(said.extra.is_null());
  set_temp_names(said, {.lane = "m@1/w@2", .names = {"x", "y"}});
  BOOST_TEST(temp_names_in(said).lane == "m@1/w@2");
  BOOST_TEST(joined(temp_names_in(said).names) == "x y ");
}

BOOST_AUTO_TEST_CASE(ids_after_a_rewind_are_new) {
  event_log log;
  BOOST_TEST(placed_id(0, log.slice(), "r/a@1/1") == "r/a@1/1");
  BOOST_TEST(placed_id(7, log.slice(), "r/a@1/1") == "r/a@1/1~7");
  event known;
  known.id = "r/a@1/1~5";
  log.push_back(std::make_shared<const event>(known));
  BOOST_TEST(placed_id(7, log.slice(), "r/a@1/1") == "r/a@1/1~5");
  BOOST_TEST(is_placed("x", "x"));
  BOOST_TEST(is_placed("x~12", "x"));
  for (const auto* other : {"x~", "x~1a", "x1", "y", ""})
    BOOST_TEST(!is_placed(other, "x"), other);
}

// -- parts ----

BOOST_AUTO_TEST_CASE(a_part_has_the_events_at_and_below_its_place) {
  run_history on;
  on.add("s@1/a@1", "one");
  on.add("s@1/b@1/c@1", "two");
  on.add("s@1/b@1", "three");
  on.add("s@1/a@1", "four");
  const auto run = on.read();
  BOOST_TEST(shown(run, "s@1") == "0 1-4 s@1/a@1 s@1/b@1 ");
  BOOST_TEST(shown(run, "s@1/a@1") == "2 1-4 ");
  BOOST_TEST(shown(run, "s@1/b@1") == "1 2-3 s@1/b@1/c@1 ");
  BOOST_TEST(shown(run, "s@1/b@1/c@1") == "1 2-2 ");
  BOOST_TEST(shown(run, "s@1/a@2") == "none");
  BOOST_TEST(run.start() == "s@1");
  BOOST_TEST(run.outside().empty());
}

BOOST_AUTO_TEST_CASE(a_run_without_events_has_no_start) {
  const recovered_run run(event_slice(), "r");
  BOOST_TEST(run.start() == "");
  BOOST_TEST(run.at("") == nullptr);
  BOOST_TEST(run.last_of_call("a@1") == 0U);
  BOOST_TEST(!run.has_gone_on("", "a@1"));
}

BOOST_AUTO_TEST_CASE(messages_claims_and_other_runs_do_not_count) {
  run_history on;
  on.add("a@1", "by a user").author = "user";
  set_fact(on.add("a@1", "a claim"), recovers_fact, 1);
  on.add("a@1", "of another run").invocation_id = "other";
  on.add("a@1", "mine");
  const auto run = on.read();
  BOOST_TEST(shown(run, "a@1") == "1 1-1 ");
  BOOST_TEST(run.last_said("a@1", "")->text() == "mine");
}

BOOST_AUTO_TEST_CASE(events_without_a_place_are_outside) {
  run_history on;
  on.add("", "before", agent_step::before_run);
  on.add("a@1", "said");
  on.add("", "after", agent_step::after_run);
  const auto run = on.read();
  BOOST_TEST_REQUIRE(run.outside().size() == 2U);
  BOOST_TEST(run.outside()[0]->text() == "before");
  BOOST_TEST(run.outside()[1]->text() == "after");
  BOOST_TEST(run.start() == "a@1");
  BOOST_TEST(shown(run, "a@1") == "1 2-2 ");
  // The run has gone on after its agent.
  BOOST_TEST(!run.has_gone_on("", "a@1"));
}

BOOST_AUTO_TEST_CASE(a_call_includes_the_agents_that_took_over) {
  run_history on;
  on.add("s@1/chat@1", "one");
  on.add("s@1/chat@1.1/billing@1", "two");
  on.add("s@1/chat@1.2/chat@1", "three");
  const auto run = on.read();
  BOOST_TEST(run.last_of_call("s@1/chat@1") == 3U);
  BOOST_TEST(shown(run, "s@1/chat@1") == "1 1-1 ");
  BOOST_TEST(shown(run, "s@1/chat@1.1/billing@1") == "1 2-2 ");
  BOOST_TEST(shown(run, "s@1/chat@1.2/chat@1") == "1 3-3 ");
  // The place of a hand-over is not that of an agent.
  BOOST_TEST(shown(run, "s@1/chat@1.1") == "none");
  BOOST_TEST(shown(run, "s@1") == "0 1-3 s@1/chat@1 ");
  BOOST_TEST(run.start() == "s@1");
}

BOOST_AUTO_TEST_CASE(a_run_begins_with_the_agent_that_handed_over) {
  run_history on;
  on.add("chat@1.1/billing@1", "two");
  BOOST_TEST(on.read().start() == "chat@1");
}

BOOST_AUTO_TEST_CASE(an_agent_goes_on_by_events_behind_the_call) {
  run_history on;
  on.add("s@1/a@1", "one");
  BOOST_TEST(!on.read().has_gone_on("s@1", "s@1/a@1"));
  on.add("s@1/a@1.1/b@1", "two");
  BOOST_TEST(!on.read().has_gone_on("s@1", "s@1/a@1"));
  on.add("s@1/c@1", "three");
  BOOST_TEST(on.read().has_gone_on("s@1", "s@1/a@1"));
  BOOST_TEST(!on.read().has_gone_on("s@1", "s@1/c@1"));
  BOOST_TEST(!on.read().has_gone_on("s@1", "s@1/d@1"));
  on.add("s@1", "", agent_step::after_agent);
  BOOST_TEST(on.read().has_gone_on("s@1", "s@1/c@1"));
}

BOOST_AUTO_TEST_CASE(an_escalation_below_counts_above) {
  run_history on;
  on.add("l@1/a@1/b@1").actions.escalate = true;
  on.add("l@1/c@1", "x");
  const auto run = on.read();
  BOOST_TEST(run.at("l@1")->has_escalated);
  BOOST_TEST(run.at("l@1/a@1")->has_escalated);
  BOOST_TEST(run.at("l@1/a@1/b@1")->has_escalated);
  BOOST_TEST(!run.at("l@1/c@1")->has_escalated);
}

BOOST_AUTO_TEST_CASE(steps_are_those_of_the_place_itself) {
  run_history on;
  on.add("s@1/a@1", "", agent_step::state);
  const auto run = on.read();
  BOOST_TEST(run.at("s@1/a@1")->has(agent_step::state));
  BOOST_TEST(!run.at("s@1/a@1")->has(agent_step::body));
  BOOST_TEST(!run.at("s@1")->has(agent_step::state));
}

BOOST_AUTO_TEST_CASE(the_last_words_are_those_on_the_branch) {
  run_history on;
  on.add("s@1/a@1", "mine").branch = "one";
  on.add("s@1/b@1", "theirs").branch = "two";
  auto& thought = on.add("s@1/a@1", "thinking");
  thought.branch = "one";
  thought.content.parts[0].thought = true;
  on.add("s@1/a@1").branch = "one";
  auto& input = on.add("s@1/a@1", "the input of a node");
  input.branch = "one";
  set_fact(input, "workflow", json::object({{"input", 1}}));
  const auto run = on.read();
  BOOST_TEST(run.last_said("s@1/a@1", "one")->text() == "mine");
  BOOST_TEST(run.last_said("s@1", "one")->text() == "mine");
  BOOST_TEST(run.last_said("s@1", "two")->text() == "theirs");
  BOOST_TEST(run.last_said("s@1/a@1", "two") == nullptr);
}

BOOST_AUTO_TEST_CASE(the_newest_result_of_a_lane_counts) {
  run_history on;
  const auto tell = [&on](const std::string& lane, json result) {
    auto& said = on.add(lane + "/x@1", "x");
    set_fact(said, result_fact, std::move(result));
    set_fact(said, lane_fact, lane);
  };
  tell("m@1/w@1", 1);
  tell("m@1/w@2", nullptr);
  tell("m@1/w@1", 2);
  const auto run = on.read();
  BOOST_TEST(run.result_at("m@1/w@1").value() == 2);
  // Null is a result, too.
  BOOST_TEST_REQUIRE(run.result_at("m@1/w@2").has_value());
  BOOST_TEST(run.result_at("m@1/w@2")->is_null());
  BOOST_TEST(!run.result_at("m@1/w@3").has_value());
}

BOOST_AUTO_TEST_CASE(names_of_keys_are_kept_by_lane) {
  run_history on;
  set_temp_names(on.add("a@1"), {.lane = {}, .names = {"x", "y"}});
  set_temp_names(on.add("a@1"), {.lane = {}, .names = {"y", "z"}});
  set_temp_names(on.add("m@1/w@1"), {.lane = "m@1/w@1", .names = {"own"}});
  const auto run = on.read();
  BOOST_TEST(joined(run.temp_names_of("")) == "x y z ");
  BOOST_TEST(joined(run.temp_names_of("m@1/w@1")) == "own ");
  BOOST_TEST(run.temp_names_of("m@1/w@2").empty());
}

BOOST_AUTO_TEST_CASE(attempts_of_a_visit_are_places_of_their_own) {
  run_history on;
  on.add("w@1/n@1/a@1", "first");
  on.add("w@1/n@1~2/a@1", "second");
  const auto run = on.read();
  BOOST_TEST(shown(run, "w@1/n@1/a@1") == "1 1-1 ");
  BOOST_TEST(shown(run, "w@1/n@1~2/a@1") == "1 2-2 ");
  BOOST_TEST(shown(run, "w@1/n@1~2") == "0 2-2 w@1/n@1~2/a@1 ");
}

BOOST_AUTO_TEST_SUITE_END()
