// Turns of LLM agents that were cut off, and runs that can be recovered.

#include "troupe/agents/turns/cut_off_turn.hpp"

#include "troupe/agents/turns/recovery.hpp"
#include "troupe/agents/turns/resumption.hpp"
#include "troupe/contexts/lanes/event_place.hpp"

#include "../outcome.hpp"
#include <boost/test/unit_test.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(cut_off_turns)

namespace {

event placed(content said, agent_step step) {
  event made(std::move(said));
  made.author = "a";
  set_place(made, "a@1", step);
  return made;
}

event words(const std::string& said) {
  return placed(text("{}", said), agent_step::body);
}

event calls(const std::vector<std::string>& ids) {
  content said("model", {});
  for (const auto& id : ids)
    said.parts.emplace_back(function_call(id, "t", json::object()));
  return placed(std::move(said), agent_step::body);
}

event results(const std::vector<std::string>& ids,
              agent_step step = agent_step::tools) {
  content said("user", {});
  for (const auto& id : ids)
    said.parts.emplace_back(function_response{id, "t", json::object()});
  return placed(std::move(said), step);
}

event question(std::vector<std::string> ids) {
  auto asked = placed(content("model", {}), agent_step::question);
  asked.long_running_tool_ids = std::move(ids);
  return asked;
}

event ending(event said) {
  said.actions.skip_summarization = true;
  return said;
}

event handing_over(event said) {
  said.actions.transfer_to_agent = "other";
  return said;
}

/// Shows a turn: `made over called [answered] (asked) to=agent`.
std::string shown(const std::vector<event>& said) {
  std::vector<event_ptr> own;
  for (const auto& each : said)
    own.push_back(std::make_shared<const event>(each));
  const auto turn = find_cut_off_turn(own);
  std::string line;
  if (turn.made)
    line += "made ";
  if (turn.is_over)
    line += "over ";
  if (turn.has_called)
    line += "called ";
  for (const auto& id : turn.answered)
    line += "[" + id + "] ";
  for (const auto& id : turn.asked)
    line += "(" + id + ") ";
  if (!turn.transfer_to_agent.empty())
    line += "to=" + turn.transfer_to_agent + " ";
  return line;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_turn_is_as_far_as_its_newest_events) {
  BOOST_TEST(shown({}) == "");
  BOOST_TEST(shown({words("x")}) == "made over ");
  BOOST_TEST(shown({calls({"1", "2"})}) == "made ");
  BOOST_TEST(shown({calls({"1", "2"}), results({"1", "2"})})
             == "made called [1] [2] ");
  BOOST_TEST(shown({calls({"1"}), results({"1"}), words("x")}) == "made over ");
  BOOST_TEST(shown({calls({"1"}), results({"1"}), calls({"2"})}) == "made ");
}

BOOST_AUTO_TEST_CASE(a_result_ends_the_turn_if_it_is_the_answer) {
  BOOST_TEST(shown({calls({"1"}), ending(results({"1"}))})
             == "made over called [1] ");
  // Another call has no result yet.
  BOOST_TEST(shown({calls({"1", "2"}), ending(results({"1"}))})
             == "made called [1] ");
  BOOST_TEST(shown({calls({"1"}), ending(results({"1"})), calls({"2"})})
             == "made ");
}

BOOST_AUTO_TEST_CASE(a_question_tells_that_the_calls_were_made) {
  BOOST_TEST(shown({calls({"1"}), question({"q"})}) == "made called (q) ");
  BOOST_TEST(shown({calls({"1", "2"}), results({"1"}), question({"q"})})
             == "made called [1] (q) ");
}

BOOST_AUTO_TEST_CASE(a_task_answers_its_call) {
  BOOST_TEST(shown({calls({"1"}), results({"1"}, agent_step::task)})
             == "made [1] ");
  BOOST_TEST(
    shown({calls({"1", "2"}), results({"2"}), results({"1"}, agent_step::task)})
    == "made called [2] [1] ");
}

BOOST_AUTO_TEST_CASE(a_hand_over_is_kept_until_the_next_answer) {
  BOOST_TEST(shown({calls({"1"}), handing_over(results({"1"}))})
             == "made called [1] to=other ");
  BOOST_TEST(shown({calls({"1"}), handing_over(results({"1"})), words("x")})
             == "made over ");
}

BOOST_AUTO_TEST_CASE(events_around_the_body_change_nothing) {
  for (const auto step : {agent_step::before_agent,
                          agent_step::after_agent,
                          agent_step::state,
                          agent_step::pause}) {
    BOOST_TEST(shown({placed(text("x"), step)}) == "");
    BOOST_TEST(shown({calls({"1"}), placed(text("x"), step)}) == "made ");
  }
}

// -- runs that can be recovered ----

namespace {

event of_run(const std::string& author, const std::string& id = "r") {
  event said(text("x"));
  said.author = author;
  said.invocation_id = id;
  said.id = author + "-" + id;
  if (author != "user")
    set_place(said, author + "@1", agent_step::body);
  return said;
}

event with_temp(event said, temp_names names) {
  set_temp_names(said, names);
  return said;
}

event with_state(event said, const json& state) {
  said.actions.extra = json::object({{"agentState", state}});
  return said;
}

result<recorded_run> find(const std::vector<event>& all,
                          recovery_wish wish
                          = {.invocation_id = "r", .recoveries_max = 3}) {
  event_log log;
  for (const auto& each : all)
    log.push_back(std::make_shared<const event>(each));
  return find_recoverable(log.slice(), wish);
}

bool has(const result<recorded_run>& found, const std::string& part) {
  return reason_of(found).find(part) != std::string::npos;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_run_is_found_by_its_message) {
  const auto found = find({of_run("user", "other"),
                           of_run("user"),
                           of_run("a"),
                           make_claim_event("a", "r", "p"),
                           make_claim_event("a", "other", "p"),
                           of_run("user", "later")});
  BOOST_TEST_REQUIRE(code_of(found) == "ok");
  BOOST_TEST(found->message == 2U);
  BOOST_TEST(found->said->id == "user-r");
  BOOST_TEST(found->recoveries == 1U);
}

BOOST_AUTO_TEST_CASE(a_run_without_message_is_not_found) {
  BOOST_TEST(code_of(find({})) == "not_found");
  BOOST_TEST(code_of(find({of_run("a"), make_claim_event("a", "r", "p")}))
             == "not_found");
  BOOST_TEST(has(find({}), "'r'"));
}

BOOST_AUTO_TEST_CASE(a_claim_is_an_event_of_an_agent) {
  auto claim = make_claim_event("a", "r", "p");
  BOOST_TEST(claim.invocation_id == "r");
  BOOST_TEST(claim.author == "a");
  BOOST_TEST(claims_run(claim));
  number_claim(claim, 4);
  BOOST_TEST(*fact_in(claim, recovers_fact) == 4);
  claim.author = "user";
  BOOST_TEST(!claims_run(claim));
  BOOST_TEST(!claims_run(of_run("a")));
}

BOOST_AUTO_TEST_CASE(claims_are_limited) {
  const std::vector<event> all{of_run("user"),
                               make_claim_event("a", "r", "p"),
                               make_claim_event("a", "r", "p")};
  const auto code = [&all](std::size_t most) {
    return code_of(find(all, {.invocation_id = "r", .recoveries_max = most}));
  };
  BOOST_TEST(code(3) == "ok");
  BOOST_TEST(code(2) == "limit_exceeded");
  BOOST_TEST(code(0) == "limit_exceeded");
}

// The holder that was found to be free has to be that of the newest claim.
BOOST_AUTO_TEST_CASE(a_claim_by_another_process_is_a_conflict) {
  const std::vector<event> all{of_run("user"), make_claim_event("a", "r", "p")};
  const auto code = [&all](const std::string& holder) {
    return code_of(find(
      all, {.invocation_id = "r", .recoveries_max = 3, .free_holder = holder}));
  };
  BOOST_TEST(code("p") == "ok");
  BOOST_TEST(code("other") == "conflict");
}

// A process that has left a run may have recovered it again since it was found
// to be free.
BOOST_AUTO_TEST_CASE(a_run_is_left_under_a_new_name_after_each_recovery) {
  const auto claim = [](std::uint64_t number) {
    auto made = make_claim_event("a", "r", "p");
    number_claim(made, number);
    return made;
  };
  std::vector<event> all{of_run("user"), claim(1)};
  const auto code = [&all](const std::string& holder) {
    return code_of(find(
      all, {.invocation_id = "r", .recoveries_max = 3, .free_holder = holder}));
  };
  BOOST_TEST(code(left_holder("p", 1)) == "ok");
  BOOST_TEST(code(refused_holder("p", 1)) == "ok");
  // After a second claim whose commit failed.
  BOOST_TEST(code(left_holder("p", 2)) == "ok");
  BOOST_TEST(code(left_holder("p", 3)) == "conflict");
  BOOST_TEST(code(left_holder("p", 0)) == "conflict");
  BOOST_TEST(code(left_holder("other", 1)) == "conflict");
  all.push_back(claim(2));
  BOOST_TEST(code(left_holder("p", 1)) == "conflict");
  BOOST_TEST(code(left_holder("p", 2)) == "ok");
  BOOST_TEST(is_left(left_holder("p", 2)));
  BOOST_TEST(is_left(refused_holder("p", 2)));
  BOOST_TEST(!is_refused(left_holder("p", 2)));
  BOOST_TEST(!is_left("p"));
}

BOOST_AUTO_TEST_CASE(lost_keys_are_named) {
  const std::vector<event> all{
    with_temp(of_run("user"), {.lane = {}, .names = {"m"}}),
    with_temp(of_run("a"), {.lane = {}, .names = {"x", "m"}}),
    with_temp(of_run("b"), {.lane = "p@1/b@1", .names = {"of_lane"}})};
  const auto found = find(all);
  BOOST_TEST(code_of(found) == "conflict");
  BOOST_TEST(has(found, "temp:m, temp:x;"), reason_of(found));
  BOOST_TEST(!has(found, "of_lane"), reason_of(found));
  BOOST_TEST(
    code_of(find(
      all,
      {.invocation_id = "r", .recoveries_max = 3, .allow_lost_temp = true}))
    == "ok");
}

BOOST_AUTO_TEST_CASE(a_run_that_waits_is_not_recovered) {
  const auto found
    = find({of_run("user"),
            with_state(of_run("a"),
                       {{"waitsFor", json::array({"call-1", "call-2"})}})});
  BOOST_TEST(code_of(found) == "conflict");
  BOOST_TEST(has(found, "call-1, call-2"), reason_of(found));
}

BOOST_AUTO_TEST_CASE(a_run_that_gave_its_pause_back_is_not_recovered) {
  const auto found
    = find({of_run("user"), with_state(of_run("a"), {{"releases", "user-r"}})});
  BOOST_TEST(code_of(found) == "conflict");
  BOOST_TEST(has(found, "send the answer again"), reason_of(found));
  BOOST_TEST(code_of(find({of_run("user"),
                           with_state(of_run("a"), {{"releases", "user-2"}})}))
             == "ok");
}

BOOST_AUTO_TEST_SUITE_END()
