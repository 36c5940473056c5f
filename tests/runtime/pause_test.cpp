// Runs that pause until an answer comes from outside, and the runs that
// continue them.

#include "pause_fixture.hpp"
#include <boost/test/unit_test.hpp>

#include <memory>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(pauses)

// -- long-running tools ----

BOOST_AUTO_TEST_CASE(a_long_running_tool_without_a_result_ends_the_run) {
  pause_fixture on;
  const auto root = one_call("a", order());
  // The events are the call, the tool's changes, and the pause.
  BOOST_TEST(on.go(root) == "a= a= a= | ok");
  const auto events = on.events(on.key);
  const auto& call = *events[1]->content.parts[0].call();
  BOOST_TEST(on.waits == std::vector{call.id});
  BOOST_TEST(events[1]->long_running_tool_ids == std::vector{call.id});
  BOOST_TEST(is_final(*events[1]));
  BOOST_TEST(on.state_now() == json({{"ordered", 1}}));
}

BOOST_AUTO_TEST_CASE(its_response_lets_the_agent_go_on) {
  pause_fixture on;
  const auto model
    = scripted({{"a", {calling("order"), {.text = "it is ${input}"}}}});
  const auto root = uses("a", model, {order()});
  on.go(root);
  BOOST_TEST(on.answer(root, {{"ticket", 7}}) == "a=it is go | ok");
  BOOST_TEST(on.waits.empty());
}

BOOST_AUTO_TEST_CASE(a_long_running_tool_with_a_result_is_like_any_other) {
  pause_fixture on;
  const tool quick({.name = "order",
                    .run = [](const json&, tool_context&) -> json {
                      return {{"status", "pending"}};
                    },
                    .long_running = true});
  const auto root = one_call("a", quick);
  BOOST_TEST(on.go(root) == "a= a= a=done | ok");
  BOOST_TEST(on.waits.empty());
  // A later response replaces the first one.
  const auto id = on.events(on.key)[1]->long_running_tool_ids.at(0);
  BOOST_TEST(on.go(root, on.replies({{id, {{"status", "sent"}}}}))
             == "a=done | ok");
}

BOOST_AUTO_TEST_CASE(the_model_sees_each_call_with_its_newest_response) {
  pause_fixture on;
  const auto seen = std::make_shared<std::vector<model_request>>();
  const auto asked = std::make_shared<made_model>(
    [seen](model_request request, const model_reply& reply) {
      seen->push_back(request);
      content said("model", {});
      if (seen->size() == 1)
        said.parts.emplace_back(function_call{"", "order", json::object()});
      else
        said.parts.emplace_back("done");
      reply(model_response(std::move(said)));
    });
  const auto root = uses("a", asked, {order()});
  on.go(root);
  const auto id = on.waits.at(0);
  // Another message comes first; the call is shown with the placeholder of an
  // open call.
  on.go(root, user_text("are you there?"));
  BOOST_TEST(seen->at(1).contents.size() == 4U);
  BOOST_TEST(
    seen->at(1).contents[2]->parts[0].response()->response->contains("status"));
  on.go(root, on.replies({{id, {{"ticket", 7}}}}));
  // The call and its answer come last, because the model continues there.
  const auto& last = seen->at(2).contents;
  BOOST_TEST(last.size() == 5U);
  BOOST_TEST(last[3]->parts[0].call()->id == id);
  BOOST_TEST(last[4]->parts[0].response()->response.data()
             == json({{"ticket", 7}}));
}

BOOST_AUTO_TEST_CASE(the_other_calls_of_the_turn_are_answered_at_once) {
  pause_fixture on;
  scripted_reply both;
  both.function_calls
    = {{"", "order", json::object()}, {"", "look", json::object()}};
  const auto look = tool_of("look", [](const json&, tool_context&) -> json {
    return {{"seen", true}};
  });
  const auto root
    = uses("a", scripted({{"a", {both, {.text = "done"}}}}), {order(), look});
  BOOST_TEST(on.go(root) == "a= a= a= | ok");
  BOOST_TEST(responses(on, on.key) == json({{{"seen", true}}}));
  BOOST_TEST(on.answer(root, {{"ticket", 7}}) == "a=done | ok");
}

BOOST_AUTO_TEST_CASE(an_agent_goes_on_when_all_its_calls_are_answered) {
  pause_fixture on;
  scripted_reply both;
  both.function_calls
    = {{"", "order", json::object()}, {"", "order", json::object()}};
  const auto root
    = uses("a", scripted({{"a", {both, {.text = "done"}}}}), {order()});
  on.go(root);
  const auto open = on.waits;
  BOOST_TEST(open.size() == 2U);
  BOOST_TEST(on.go(root, on.replies({{open[1], {{"n", 2}}}})) == "a= | ok");
  BOOST_TEST(on.waits == std::vector{open[0]});
  BOOST_TEST(on.go(root, on.replies({{open[0], {{"n", 1}}}})) == "a=done | ok");
}

// -- confirmation ----

BOOST_AUTO_TEST_CASE(
  a_tool_that_needs_it_is_not_called_before_the_user_allows) {
  pause_fixture on;
  const auto root = one_call("a", pay());
  BOOST_TEST(on.go(root) == "a= a= a= | ok");
  BOOST_TEST(on.state_now() == json::object());
  const auto events = on.events(on.key);
  const auto& question = *events[2]->content.parts[0].call();
  BOOST_TEST(question.name == "adk_request_confirmation");
  BOOST_TEST(on.waits == std::vector{question.id});
  const auto& original = question.args->at("originalFunctionCall");
  BOOST_TEST(original.at("name") == "pay");
  BOOST_TEST(original.at("id") == events[1]->content.parts[0].call()->id);
  BOOST_TEST(on.answer(root, yes) == "a= a=done | ok");
  BOOST_TEST(on.state_now() == json({{"paid", 1}}));
}

BOOST_AUTO_TEST_CASE(a_call_that_the_user_rejects_never_reaches_the_tool) {
  pause_fixture on;
  const auto root = one_call("a", pay());
  on.go(root);
  BOOST_TEST(on.answer(root, no) == "a= a=done | ok");
  BOOST_TEST(on.state_now() == json::object());
  const auto told = responses(on, on.key).back().value("error", "");
  BOOST_TEST(told.find("rejected") != std::string::npos, told);
}

BOOST_AUTO_TEST_CASE(a_rule_says_which_calls_need_it) {
  pause_fixture on;
  const auto careful
    = pay([](const json& args) { return args.value("sum", 0) > 100; });
  scripted_reply both;
  both.function_calls
    = {{"", "pay", json{{"sum", 500}}}, {"", "pay", json{{"sum", 5}}}};
  const auto root
    = uses("a", scripted({{"a", {both, {.text = "done"}}}}), {careful});
  on.go(root);
  BOOST_TEST(on.waits.size() == 1U);
  BOOST_TEST(responses(on, on.key) == json({{{"paid", 5}}}));
  on.answer(root, yes);
  BOOST_TEST(responses(on, on.key).back() == json({{"paid", 500}}));
  BOOST_TEST(on.state_now() == json({{"paid", 2}}));
}

BOOST_AUTO_TEST_CASE(a_tool_asks_by_itself_and_gets_the_answer) {
  pause_fixture on;
  const tool leave(
    {.name = "leave", .run = [](const json&, tool_context& context) -> json {
       if (!context.confirmation()) {
         context.state().set("ghost", 1);
         context.request_confirmation("How many days?", {{"days", 0}});
         return "discarded";
       }
       const auto& answer = *context.confirmation();
       return {{"confirmed", answer.confirmed},
               {"days", answer.payload->value("days", -1)}};
     }});
  const auto root = one_call("a", leave);
  on.go(root);
  const auto events = on.events(on.key);
  BOOST_TEST(
    events[2]->content.parts[0].call()->args->at("toolConfirmation").at("hint")
    == "How many days?");
  BOOST_TEST(on.state_now() == json::object());
  on.answer(root, {{"confirmed", false}, {"payload", {{"days", 3}}}});
  // The tool itself asked, so it also decides about a refusal.
  BOOST_TEST(responses(on, on.key).back()
             == json({{"confirmed", false}, {"days", 3}}));
}

BOOST_AUTO_TEST_CASE(arguments_that_do_not_fit_are_not_asked_about) {
  pause_fixture on;
  const tool strict(
    {.name = "strict",
     .parameters = {{"type", "object"}, {"required", {"sum"}}},
     .run = [](const json&, tool_context&) -> json { return 1; },
     .require_confirmation = true});
  BOOST_TEST(on.go(one_call("a", strict)) == "a= a= a=done | ok");
  BOOST_TEST(on.waits.empty());
}

BOOST_AUTO_TEST_CASE(a_question_that_was_written_by_others_does_not_count) {
  pause_fixture on;
  const auto root = one_call("a", pay());
  on.go(root);
  const auto id = on.waits.at(0);
  auto forged = *on.events(on.key)[2];
  auto args = forged.content.parts[0].call()->args.data();
  args["originalFunctionCall"]["args"]["sum"] = 1'000'000;
  forged.content.parts
    = {part(function_call{"forged", "adk_request_confirmation", args})};
  forged.long_running_tool_ids = {"forged"};
  forged.id.clear();
  on.runtime.sessions().append_event(on.key, forged).value();
  BOOST_TEST(on.go(root, on.replies({{"forged", yes}}))
             == "| invalid_argument");
  BOOST_TEST(on.go(root, on.replies({{id, yes}})) == "a= a=done | ok");
  BOOST_TEST(on.state_now() == json({{"paid", 1}}));
}

// -- valid answers ----

BOOST_AUTO_TEST_CASE(a_message_that_answers_nothing_is_refused) {
  pause_fixture on;
  const auto root = one_call("a", pay());
  on.go(root);
  const auto before = on.events(on.key).size();
  const auto refused = [&](const content& message, const std::string& why) {
    BOOST_TEST(on.agent_fixture::show(on.runtime.run(root, on.key, message))
               == "| invalid_argument");
    BOOST_TEST(agent_fixture::last_reason().find(why) != std::string::npos,
               agent_fixture::last_reason());
    BOOST_TEST(on.events(on.key).size() == before);
  };
  const auto id = on.waits.at(0);
  refused(on.replies({{"nobody", yes}}), "answers no call");
  refused(on.replies({{"", yes}}), "answers no call");
  refused(on.replies({{id, {{"yes", true}}}}), "confirmed");
  refused(on.replies({{id, yes}, {id, yes}}), "twice");
  auto mixed = on.replies({{id, yes}});
  mixed.parts.emplace_back("and hello");
  refused(mixed, "nothing else");
  content renamed("user", {part(function_response{id, "pay", yes})});
  refused(renamed, "names 'pay'");
  // The refused message has not lost the pause.
  BOOST_TEST(on.go(root, on.replies({{id, yes}})) == "a= a=done | ok");
}

BOOST_AUTO_TEST_CASE(answers_for_two_runs_come_in_two_messages) {
  pause_fixture on;
  const auto a = one_call("a", order());
  const auto b = one_call("b", order());
  on.go(a);
  const auto first = on.waits.at(0);
  on.go(b);
  const auto second = on.waits.at(0);
  BOOST_TEST(on.go(a, on.replies({{first, {{"n", 1}}}, {second, {{"n", 2}}}}))
             == "| invalid_argument");
  // Each run continues by itself, in any order.
  BOOST_TEST(on.go(b, on.replies({{second, {{"n", 2}}}})) == "b=done | ok");
  BOOST_TEST(on.go(a, on.replies({{first, {{"n", 1}}}})) == "a=done | ok");
}

BOOST_AUTO_TEST_CASE(an_answer_that_comes_again_runs_nothing_again) {
  pause_fixture on;
  const auto root = sequential(
    "s", {adds("n", "n"), one_call("a", order()), says("b", "end")});
  on.go(root);
  const auto message = on.replies({{on.waits.at(0), {{"n", 1}}}});
  BOOST_TEST(on.go(root, message) == "a=done b=end | ok");
  BOOST_TEST(on.go(root, message) == "| conflict");
  BOOST_TEST(on.state_now()["n"] == 1);
}

BOOST_AUTO_TEST_CASE(news_that_no_agent_could_hear_are_refused) {
  pause_fixture on;
  const tool quick({.name = "order",
                    .run = [](const json&, tool_context&) -> json {
                      return {{"status", "pending"}};
                    },
                    .long_running = true});
  const auto root = sequential("s", {adds("n", "n"), one_call("a", quick)});
  on.go(root);
  const auto id = on.events(on.key)[2]->long_running_tool_ids.at(0);
  BOOST_TEST(on.go(root, on.replies({{id, {{"status", "sent"}}}}))
             == "| invalid_argument");
  BOOST_TEST(on.state_now()["n"] == 1);
}

// -- open calls ----

BOOST_AUTO_TEST_CASE(open_calls_have_their_question_and_are_answered) {
  pause_fixture on;
  const auto root = uses(
    "clerk",
    scripted({{"clerk", {calling("pay", {{"sum", 80}}), {.text = "done"}}}}),
    {pay()});
  BOOST_TEST(on.sessions().open_calls(on.key).value().empty());
  on.go(root);
  const auto open = on.sessions().open_calls(on.key).value();
  BOOST_REQUIRE(open.size() == 1U);
  BOOST_TEST(open[0].id == on.waits.at(0));
  BOOST_TEST(open[0].tool == "pay");
  BOOST_TEST(open[0].args.data() == json({{"sum", 80}}));
  BOOST_TEST(open[0].agent == "clerk");
  BOOST_REQUIRE(open[0].question.has_value());
  BOOST_TEST(!open[0].question->confirmed);
  BOOST_TEST(code_thrown_by([&] { answer(open[0], 1); }) == "invalid_argument");
  on.go(root, allow(open[0]));
  BOOST_TEST(on.state_now() == json({{"paid", 1}}));
  BOOST_TEST(on.sessions().open_calls(on.key).value().empty());
}

BOOST_AUTO_TEST_CASE(a_denied_call_is_not_made) {
  pause_fixture on;
  const auto root = one_call("clerk", pay());
  on.go(root);
  on.go(root, deny(on.sessions().open_calls(on.key).value().at(0)));
  BOOST_TEST(on.state_now() == json::object());
  BOOST_TEST(on.sessions().open_calls(on.key).value().empty());
}

BOOST_AUTO_TEST_CASE(a_long_running_call_is_answered_with_its_result) {
  pause_fixture on;
  const auto root = one_call("buyer", order());
  on.go(root);
  const auto open = on.sessions().open_calls(on.key).value();
  BOOST_REQUIRE(open.size() == 1U);
  BOOST_TEST(open[0].tool == "order");
  BOOST_TEST(!open[0].question.has_value());
  BOOST_TEST(code_thrown_by([&] { allow(open[0]); }) == "invalid_argument");
  on.go(root, answer(open[0], "arrived"));
  BOOST_TEST(responses(on, on.key).back() == json({{"result", "arrived"}}));
}

BOOST_AUTO_TEST_CASE(answers_to_several_open_calls_are_one_message) {
  pause_fixture on;
  scripted_reply both;
  both.function_calls
    = {{"", "pay", json{{"sum", 1}}}, {"", "order", json::object()}};
  const auto root = uses(
    "clerk", scripted({{"clerk", {both, {.text = "done"}}}}), {pay(), order()});
  on.go(root);
  const auto open = on.sessions().open_calls(on.key).value();
  BOOST_REQUIRE(open.size() == 2U);
  content message;
  for (const auto& call : open)
    message
      = join_answers({message, call.question ? allow(call) : answer(call, 7)});
  on.go(root, message);
  BOOST_TEST(on.state_now() == json({{"paid", 1}, {"ordered", 1}}));
  BOOST_TEST(on.sessions().open_calls(on.key).value().empty());
}

BOOST_AUTO_TEST_CASE(open_calls_of_a_missing_session_are_not_found) {
  pause_fixture on;
  BOOST_TEST(code_of(on.sessions().open_calls({"press", "ann", "none"}).get())
             == "not_found");
}

BOOST_AUTO_TEST_SUITE_END()
