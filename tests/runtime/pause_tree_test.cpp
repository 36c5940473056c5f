// Pauses inside sequences, loops, lanes and other agents. Finished parts do not
// run again, and waiting parts continue at their place.

#include "troupe/agents/agent_tool.hpp"

#include "pause_fixture.hpp"
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(pauses_below_agents)

// -- below other agents ----

BOOST_AUTO_TEST_CASE(a_sequence_goes_on_behind_what_it_has_done) {
  pause_fixture on;
  const auto root = sequential(
    "s", {adds("first", "n"), one_call("a", order()), says("b", "end")});
  BOOST_TEST(on.go(root) == "first=1 a= a= s= | ok");
  BOOST_TEST(on.answer(root, {{"n", 1}}) == "a=done b=end | ok");
  BOOST_TEST(on.state_now()["n"] == 1);
}

BOOST_AUTO_TEST_CASE(a_loop_goes_on_in_the_round_where_it_was) {
  pause_fixture on;
  const auto model = scripted(
    {{"a",
      {calling("order"), {.text = "one"}, calling("order"), {.text = "two"}}}});
  const auto root = loop({.name = "l", .max_iterations = 2},
                         {uses("a", model, {order()}), adds("b", "rounds")});
  BOOST_TEST(on.go(root) == "a= a= l= | ok");
  BOOST_TEST(on.answer(root, {{"n", 1}}) == "a=one b=1 a= a= l= | ok");
  BOOST_TEST(on.answer(root, {{"n", 2}}) == "a=two b=2 | ok");
}

BOOST_AUTO_TEST_CASE(an_escalation_before_the_pause_still_ends_the_loop) {
  pause_fixture on;
  const auto root
    = loop({.name = "l", .max_iterations = 3},
           {sequential("s", {escalates("up"), one_call("a", order())}),
            says("never", "x")});
  on.go(root);
  BOOST_TEST(on.answer(root, {{"n", 1}}) == "a=done | ok");
}

BOOST_AUTO_TEST_CASE(finished_lanes_are_not_run_again) {
  pause_fixture on;
  const auto root = sequential(
    "s",
    {parallel(
       "p", {adds("quick", "n"), one_call("x", order()), one_call("y", pay())}),
     tells("end", "n")});
  const auto line = on.go(root);
  // Waiting lanes do not stop the other lanes.
  BOOST_TEST(line.find("quick=1 ") != std::string::npos, line);
  BOOST_TEST(on.waits.size() == 2U);
  const auto open = on.waits;
  const auto is_order = on.name_of(open[0]) == "order";
  const auto ordered = open[is_order ? 0 : 1];
  const auto question = open[is_order ? 1 : 0];
  // Only one call is answered; the other lane stays paused.
  BOOST_TEST(on.go(root, on.replies({{ordered, {{"n", 1}}}}))
             == "x=done s= | ok");
  BOOST_TEST(on.waits == std::vector{question});
  BOOST_TEST(on.go(root, on.replies({{question, yes}}))
             == "y= y=done end=1 | ok");
  BOOST_TEST(on.state_now()["n"] == 1);
  BOOST_TEST(on.state_now()["paid"] == 1);
  BOOST_TEST(on.state_now()["ordered"] == 1);
}

BOOST_AUTO_TEST_CASE(all_answers_in_one_message_resume_all_lanes) {
  pause_fixture on;
  const auto root
    = parallel({.name = "p"}, {one_call("x", order()), one_call("y", order())});
  on.go(root);
  const auto open = on.waits;
  on.go(root, on.replies({{open.at(0), {{"n", 1}}}, {open.at(1), {{"n", 2}}}}));
  BOOST_TEST(on.waits.empty());
  std::string said;
  for (const auto& each : on.events(on.key))
    if (each->text() == "done")
      said += each->branch + " ";
  BOOST_TEST((said == "p.x p.y " || said == "p.y p.x "), said);
}

BOOST_AUTO_TEST_CASE(a_failed_lane_is_told_once_when_all_have_ended) {
  pause_fixture on;
  const auto root
    = parallel({.name = "p", .on_failure = lane_failures::collect},
               {fails("bad"), one_call("x", order())});
  BOOST_TEST(on.go(root) == "x= x= p= | ok");
  BOOST_TEST(on.answer(root, {{"n", 1}}) == "x=done bad= | ok");
  const auto events = on.events(on.key);
  BOOST_TEST(events[events.size() - 1]->field("errorCode")
             == "callback_failed");
}

BOOST_AUTO_TEST_CASE(a_lane_that_fails_fast_ends_the_run_and_the_waiting) {
  pause_fixture on;
  const auto root = parallel("p", {fails("bad"), one_call("x", order())});
  const auto line = on.go(root);
  BOOST_TEST(line.ends_with("| callback_failed"), line);
  BOOST_TEST(on.waits.empty());
}

BOOST_AUTO_TEST_CASE(a_quorum_does_not_wait_for_lanes_that_it_does_not_need) {
  pause_fixture on;
  const auto root = parallel({.name = "p",
                              .lanes_max = 1,
                              .on_failure = lane_failures::quorum,
                              .quorum = 1},
                             {one_call("x", order()), says("y", "enough")});
  BOOST_TEST(on.go(root) == "x= x= y=enough | ok");
  BOOST_TEST(on.waits.empty());
}

BOOST_AUTO_TEST_CASE(a_quorum_that_can_only_be_reached_by_waiting_waits) {
  pause_fixture on;
  const auto root = parallel({.name = "p",
                              .lanes_max = 1,
                              .on_failure = lane_failures::quorum,
                              .quorum = 1},
                             {fails("bad"), one_call("x", order())});
  BOOST_TEST(on.go(root) == "x= x= p= | ok");
  BOOST_TEST(on.answer(root, {{"n", 1}}) == "x=done bad= | ok");
}

BOOST_AUTO_TEST_CASE(a_map_keeps_its_results_and_the_elements_that_wait) {
  pause_fixture on;
  on.append(on.key, json{{"items", {"fast", "slow", "fast"}}});
  const auto asks = one_call("asks", order());
  const auto worker = custom(
    "worker", [asks](invocation_context& context) -> agent_run {
      const auto item = context.state().find("temp:item")->data();
      if (item == "slow")
        co_await context.run(asks);
      co_await context.emit(text("{} {}",
                                 item.get<std::string>(),
                                 text_of(context.state().find("temp:index"))));
    });
  const auto root = sequential(
    "s",
    {map({.name = "m", .items_key = "items", .output_key = "results"}, worker),
     tells("end", "results")});
  BOOST_TEST(on.go(root).find("| ok") != std::string::npos);
  // The list may have changed since.
  on.append(on.key, json{{"items", json::array()}});
  const auto line = on.answer(root, {{"n", 1}});
  BOOST_TEST(line
             == "asks=done worker=slow 1 m= end=[\"fast 0\",\"slow 1\",\"fast "
                "2\"] | ok");
}

BOOST_AUTO_TEST_CASE(an_agent_that_was_handed_over_to_goes_on) {
  pause_fixture on;
  const auto model
    = scripted({{"root", {calling("transfer_to_agent", {{"agent_name", "a"}})}},
                {"a", {calling("order"), {.text = "done"}}}});
  const auto root
    = llm({.name = "root", .model = model}, {uses("a", model, {order()})});
  on.go(root);
  BOOST_TEST(on.answer(root, {{"n", 1}}) == "a=done | ok");
}

BOOST_AUTO_TEST_CASE(a_hand_over_beside_a_call_that_waits_comes_after_it) {
  pause_fixture on;
  scripted_reply both;
  both.function_calls = {{"", "order", json::object()},
                         {"", "transfer_to_agent", json{{"agent_name", "a"}}}};
  const auto model = scripted({{"root", {both}}, {"a", {{.text = "mine"}}}});
  const auto root = llm({.name = "root", .model = model, .tools = {order()}},
                        {uses("a", model, {})});
  BOOST_TEST(on.go(root) == "root= root= root= | ok");
  BOOST_TEST(on.answer(root, {{"n", 1}}) == "a=mine | ok");
}

BOOST_AUTO_TEST_CASE(a_body_of_ones_own_begins_anew_and_skips_what_has_ended) {
  pause_fixture on;
  const auto first = adds("first", "n");
  const auto asks = one_call("a", order());
  const auto root
    = custom("c", [first, asks](invocation_context& context) -> agent_run {
        co_await context.run(first);
        if (!context.is_resumed())
          co_await context.emit(text("once"));
        co_await context.run(asks);
        co_await context.emit(text("end"));
      });
  BOOST_TEST(on.go(root) == "first=1 c=once a= a= c= | ok");
  BOOST_TEST(on.answer(root, {{"n", 1}}) == "a=done c=end | ok");
}

BOOST_AUTO_TEST_CASE(a_body_that_catches_everything_waits_all_the_same) {
  pause_fixture on;
  const auto asks = one_call("a", order());
  const auto root
    = custom("c", [asks](invocation_context& context) -> agent_run {
        try {
          co_await context.run(asks);
        } catch (...) {
        }
      });
  BOOST_TEST(on.go(root) == "a= a= c= | ok");
  BOOST_TEST(on.answer(root, {{"n", 1}}) == "a=done | ok");
}

BOOST_AUTO_TEST_CASE(callbacks_around_an_agent_run_once) {
  pause_fixture on;
  std::atomic<int> before = 0;
  std::atomic<int> after = 0;
  const auto root
    = llm({.name = "a",
           .model = scripted({{"a", {calling("order"), {.text = "done"}}}}),
           .tools = {order()},
           .before_agent = {[&](callback_context&) { ++before; }},
           .after_agent = {[&](callback_context&) { ++after; }}});
  on.go(root);
  BOOST_TEST(before == 1);
  BOOST_TEST(after == 0);
  on.answer(root, {{"n", 1}});
  BOOST_TEST(before == 1);
  BOOST_TEST(after == 1);
}

BOOST_AUTO_TEST_CASE(an_agent_that_is_a_tool_cannot_wait) {
  pause_fixture on;
  const auto inner = one_call("inner", order());
  const auto root = uses(
    "a",
    scripted({{"a", {calling("inner", {{"request", "x"}}), {.text = "done"}}}}),
    {agent_tool(inner)});
  BOOST_TEST(on.go(root) == "a= a= a=done | ok");
  const auto told = responses(on, on.key).back().value("error", "");
  BOOST_TEST(told.find("cannot wait for an answer") != std::string::npos, told);
}

BOOST_AUTO_TEST_SUITE_END()
