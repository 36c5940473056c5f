// Events between a pause and its answer: other messages, failures, other
// programs, several answers; and the place where the run continues.

#include "troupe/contexts/first_invocation.hpp"

#include "pause_fixture.hpp"
#include "staged_store.hpp"
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(resumed_runs)

// -- events between the runs ----

BOOST_AUTO_TEST_CASE(another_message_meanwhile_does_not_end_the_pause) {
  pause_fixture on;
  const auto model = scripted(
    {{"a", {calling("order"), {.text = "I wait"}, {.text = "done"}}}});
  const auto root
    = sequential("s", {uses("a", model, {order()}), says("b", "end")});
  on.go(root);
  const auto id = on.waits.at(0);
  on.go(root, user_text("are you there?"));
  BOOST_TEST(on.go(root, on.replies({{id, {{"n", 1}}}}))
             == "a=done b=end | ok");
}

BOOST_AUTO_TEST_CASE(a_run_that_failed_after_the_answer_can_be_repeated) {
  pause_fixture on;
  const auto tries = std::make_shared<std::atomic<int>>(0);
  const auto root = sequential(
    "s",
    {one_call("a", order()),
     custom("b", [tries](invocation_context& context) -> agent_run {
       if ((*tries)++ == 0)
         throw std::runtime_error("broken");
       co_await context.emit(text("end"));
     })});
  on.go(root);
  const auto id = on.waits.at(0);
  BOOST_TEST(on.go(root, on.replies({{id, {{"n", 1}}}}))
             == "a=done s= | callback_failed");
  BOOST_TEST(on.go(root, on.replies({{id, {{"n", 1}}}}))
             == "a=done b=end | ok");
}

// The plugin shows that its events get the field, too.
BOOST_AUTO_TEST_CASE(each_event_of_the_answer_names_the_run_that_asked) {
  plugin bare{.name = "bare",
              .on_event = [](const session_key&,
                             const event& said) -> std::optional<event> {
                auto changed = said;
                changed.extra = {};
                return changed;
              }};
  runtime_options options;
  options.plugins = {bare};
  pause_fixture on(std::move(options));
  const auto asked = std::make_shared<std::atomic<int>>(0);
  const auto model = std::make_shared<made_model>(
    [asked](const model_request&, const model_reply& reply) {
      if ((*asked)++ == 0) {
        function_call wanted{"", "order", json::object()};
        reply(model_response(content("model", {part(std::move(wanted))})));
        return;
      }
      model_response piece(text("do"));
      piece.partial = true;
      reply(piece);
      reply(model_response(text("done")));
    });
  const auto root = uses("a", model, {order()});
  on.go(root);
  BOOST_TEST_REQUIRE(on.waits.size() == 1U);
  const auto id = on.events(on.key).front()->invocation_id;
  auto second
    = on.runtime.run(root, on.key, on.replies({{on.waits.at(0), {{"n", 1}}}}));
  int pieces = 0;
  for (const auto& said : second) {
    BOOST_TEST(first_invocation(*said) == id);
    pieces += said->partial ? 1 : 0;
  }
  BOOST_TEST(pieces == 1);
  BOOST_TEST(second.invocation_id() != id);
  for (const auto& said : on.events(on.key))
    BOOST_TEST(first_invocation(*said) == id);
  BOOST_TEST(on.events(on.key).back()->invocation_id == second.invocation_id());
  // A message that answers nothing begins work of its own.
  on.go(root);
  const auto last = on.events(on.key).back();
  BOOST_TEST(first_invocation(*last) == last->invocation_id);
  BOOST_TEST(last->extra.is_null());
}

BOOST_AUTO_TEST_CASE(a_question_that_no_run_waits_for_cannot_be_answered) {
  pause_fixture on;
  const auto root = one_call("a", pay());
  on.go(root);
  const auto id = on.waits.at(0);
  const auto other = on.cut_off();
  const auto line
    = agent_fixture::show(on.runtime.run(root, other, on.replies({{id, yes}})));
  BOOST_TEST(line == "| invalid_argument");
  BOOST_TEST(agent_fixture::last_reason().find("not open") != std::string::npos,
             agent_fixture::last_reason());
  BOOST_TEST(on.state(other) == json::object());
}

BOOST_AUTO_TEST_CASE(news_about_a_call_that_nobody_waits_for_reach_its_agent) {
  pause_fixture on;
  const auto root = one_call("a", order());
  on.go(root);
  const auto id = on.waits.at(0);
  const auto other = on.cut_off();
  const auto line = agent_fixture::show(
    on.runtime.run(root, other, on.replies({{id, {{"ticket", 7}}}})));
  BOOST_TEST(line == "a=done | ok");
}

BOOST_AUTO_TEST_CASE(another_program_on_the_store_brings_the_answer) {
  const staged_place place;
  pause_fixture first(place.options());
  const auto root = sequential(
    "s", {adds("n", "n"), one_call("a", order()), says("b", "end")});
  runtime_fixture second(place.options());
  // Loads the session, so that it is in memory as it was before the pause.
  BOOST_TEST(second.events(first.key).empty());
  first.go(root);
  const auto id = first.waits.at(0);
  auto resumed
    = second.runtime.run(root, first.key, first.replies({{id, {{"n", 1}}}}));
  BOOST_TEST(agent_fixture::follow(resumed) == "a=done b=end | ok");
  BOOST_TEST(first.state_now()["n"] == 1);
}

BOOST_AUTO_TEST_CASE(a_pause_outlives_the_program) {
  const staged_place place;
  const auto root = sequential("s", {one_call("a", pay()), says("b", "end")});
  std::string id;
  {
    pause_fixture first(place.options());
    first.go(root);
    id = first.waits.at(0);
  }
  runtime_fixture second(place.options());
  content message(
    "user",
    {part(function_response{id, "adk_request_confirmation", json(yes)})});
  auto resumed = second.runtime.run(root, {"press", "ann", "s"}, message);
  BOOST_TEST(agent_fixture::follow(resumed) == "a= a=done b=end | ok");
}

BOOST_AUTO_TEST_CASE(what_others_keep_as_agent_state_is_left_alone) {
  pause_fixture on;
  const auto root = one_call("a", order());
  on.go(root);
  const auto id = on.waits.at(0);
  for (const auto& foreign :
       {json{{"currentSubAgent", "b"}},
        json{{"checkpoint", 3}, {"resumes", 4}},
        json{{"checkpoint", {{"agent", "a"}, {"finished", -1}}}},
        json{{"checkpoint", {{"agent", "a"}, {"lanes", {1, 2}}}}},
        json{{"checkpoint", {{"agent", "a"}, {"waitsFor", id}}}}}) {
    event said;
    said.author = "a";
    said.actions.extra = json{{"agentState", foreign}};
    on.runtime.sessions().append_event(on.key, said).value();
  }
  BOOST_TEST(on.go(root, on.replies({{id, {{"n", 1}}}})) == "a=done | ok");
}

// -- several answers ----

BOOST_AUTO_TEST_CASE(a_question_is_answered_once) {
  pause_fixture on;
  const auto root = one_call("a", pay());
  on.go(root);
  const auto id = on.waits.at(0);
  const auto message = on.replies({{id, yes}});
  BOOST_TEST(on.go(root, message) == "a= a=done | ok");
  BOOST_TEST(on.go(root, message) == "| conflict");
  BOOST_TEST(on.state_now() == json({{"paid", 1}}));
}

BOOST_AUTO_TEST_CASE(of_two_answers_at_the_same_time_one_starts_a_run) {
  for (int round = 0; round < 20; ++round) {
    pause_fixture on;
    const auto root = one_call("a", pay());
    on.go(root);
    const auto message = on.replies({{on.waits.at(0), yes}});
    run_options how{.policy = run_policy::interleave};
    auto first = on.runtime.run(root, on.key, message, how);
    auto second = on.runtime.run(root, on.key, message, how);
    const auto codes
      = code_of(first.wait().get()) + " " + code_of(second.wait().get());
    BOOST_TEST((codes == "ok conflict" || codes == "conflict ok"), codes);
    BOOST_TEST(on.state_now() == json({{"paid", 1}}));
  }
}

BOOST_AUTO_TEST_CASE(of_answers_to_two_programs_one_starts_a_run) {
  const staged_place place;
  pause_fixture first(place.options());
  const auto root = one_call("a", pay());
  first.go(root);
  const auto message = first.replies({{first.waits.at(0), yes}});
  runtime_fixture second(place.options());
  second.fetch(first.key);
  auto one = first.runtime.run(root, first.key, message);
  auto other = second.runtime.run(root, first.key, message);
  const auto codes
    = code_of(one.wait().get()) + " " + code_of(other.wait().get());
  BOOST_TEST((codes == "ok conflict" || codes == "conflict ok"), codes);
  BOOST_TEST(first.state_now() == json({{"paid", 1}}));
}

BOOST_AUTO_TEST_CASE(a_run_whose_program_ended_can_be_taken_over) {
  pause_fixture on;
  const auto root = sequential("s", {one_call("a", pay()), says("b", "end")});
  on.go(root);
  const auto message = on.replies({{on.waits.at(0), yes}});
  // The session ends with the message of the resuming run, as after a crash.
  const auto other = on.open("other");
  on.go(root, message);
  for (const auto& said : on.events(on.key)) {
    on.runtime.sessions().append_event(other, said).value();
    if (said->actions.extra.data().is_object() && said->author == "user")
      break;
  }
  BOOST_TEST(agent_fixture::show(on.runtime.run(root, other, message))
             == "| conflict");
  BOOST_TEST(agent_fixture::last_reason().find("take_over")
             != std::string::npos);
  BOOST_TEST(agent_fixture::show(
               on.runtime.run(root, other, message, {.take_over = true}))
             == "a= a=done b=end | ok");
}

BOOST_AUTO_TEST_CASE(two_open_questions_of_an_agent_are_answered_one_by_one) {
  pause_fixture on;
  const auto model = scripted({{"a",
                                {calling("pay", {{"sum", 1}}),
                                 calling("pay", {{"sum", 2}}),
                                 {.text = "one"},
                                 {.text = "two"}}}});
  const auto root = uses("a", model, {pay()});
  on.go(root);
  const auto first = on.waits.at(0);
  on.go(root);
  const auto second = on.waits.at(0);
  on.go(root, on.replies({{first, yes}}));
  BOOST_TEST(responses(on, on.key).back() == json({{"paid", 1}}));
  on.go(root, on.replies({{second, yes}}));
  BOOST_TEST(responses(on, on.key).back() == json({{"paid", 2}}));
  BOOST_TEST(on.state_now() == json({{"paid", 2}}));
}

BOOST_AUTO_TEST_CASE(calls_between_question_and_answer_do_not_lose_it) {
  pause_fixture on;
  const auto look
    = tool_of("look", [](const json&, tool_context&) -> json { return 1; });
  const auto model = scripted({{"a",
                                {calling("pay"),
                                 calling("look"),
                                 {.text = "looked"},
                                 {.text = "done"}}}});
  const auto root = uses("a", model, {pay(), look});
  on.go(root);
  const auto id = on.waits.at(0);
  on.go(root, user_text("look, please"));
  BOOST_TEST(on.go(root, on.replies({{id, yes}})) == "a= a=done | ok");
  BOOST_TEST(on.state_now() == json({{"paid", 1}}));
}

BOOST_AUTO_TEST_CASE(calls_that_a_model_gives_the_same_id_stay_apart) {
  pause_fixture on;
  const auto calls = [](std::size_t count) {
    scripted_reply reply;
    for (std::size_t index = 0; index < count; ++index)
      reply.function_calls.push_back({"call_0", "pay", json{{"sum", 5}}});
    return reply;
  };
  const auto worker = uses(
    "w", scripted({{"w", {calls(1), calls(1), {.text = "x"}}}}), {pay()});
  on.append(on.key, json{{"items", {1, 2}}});
  const auto each = map({.name = "m", .items_key = "items"}, worker);
  on.go(each);
  BOOST_TEST(on.waits.size() == 2U);
  on.go(each, on.replies({{on.waits.at(0), no}, {on.waits.at(1), yes}}));
  BOOST_TEST(on.state_now()["paid"] == 1);
  // The same within one turn.
  const auto twice
    = uses("t", scripted({{"t", {calls(2), {.text = "x"}}}}), {pay()});
  on.go(twice);
  on.go(twice, on.replies({{on.waits.at(0), yes}, {on.waits.at(1), no}}));
  BOOST_TEST(on.state_now()["paid"] == 2);
}

BOOST_AUTO_TEST_CASE(only_calls_that_wait_take_answers_from_outside) {
  pause_fixture on;
  const auto balance
    = tool_of("balance", [](const json&, tool_context&) -> json { return 10; });
  const auto root = one_call("a", balance);
  on.go(root);
  const auto id = on.events(on.key)[1]->content.parts[0].call()->id;
  BOOST_TEST(on.go(root, on.replies({{id, {{"result", 1'000'000}}}}))
             == "| invalid_argument");
}

// -- the place of continuation ----

BOOST_AUTO_TEST_CASE(what_plugins_write_before_a_run_hides_no_answer) {
  runtime_options options;
  options.plugins
    = {{.name = "counts", .before_run = [](callback_context& context) {
          context.state().add("runs", 1);
        }}};
  pause_fixture on(std::move(options));
  const auto root
    = sequential("s", {adds("n", "n"), one_call("a", pay()), says("b", "end")});
  on.go(root);
  BOOST_TEST(on.answer(root, yes) == "model= a= a=done b=end | ok");
  BOOST_TEST(on.state_now() == json({{"n", 1}, {"paid", 1}, {"runs", 2}}));
}

BOOST_AUTO_TEST_CASE(plugins_that_rebuild_events_let_runs_pause) {
  runtime_options options;
  options.plugins
    = {{.name = "redacts",
        .on_event = [](const session_key&, const event& said)
          -> std::optional<event> { return event(said.content); }}};
  pause_fixture on(std::move(options));
  const auto root = one_call("a", pay());
  on.go(root);
  BOOST_TEST(on.waits.size() == 1U);
  BOOST_TEST(on.answer(root, yes) == "a= a=done | ok");
}

BOOST_AUTO_TEST_CASE(an_escalation_before_the_pause_skips_no_agent) {
  pause_fixture on;
  const auto root
    = loop({.name = "l", .max_iterations = 3},
           {says("w", "x"),
            sequential("s", {escalates("up"), one_call("a", order())}),
            says("never", "x")});
  BOOST_TEST(on.go(root) == "w=x up=up a= a= l= | ok");
  BOOST_TEST(on.answer(root, {{"n", 1}}) == "a=done | ok");
}

BOOST_AUTO_TEST_CASE(a_lane_that_escalates_and_waits_still_ends_the_loop) {
  pause_fixture on;
  scripted_reply both;
  both.function_calls
    = {{"", "stop", json::object()}, {"", "order", json::object()}};
  const auto stop = tool_of("stop", [](const json&, tool_context& context) {
    context.actions().escalate = true;
    return json();
  });
  const auto root
    = loop({.name = "l", .max_iterations = 3},
           {parallel("p",
                     {uses("a",
                           scripted({{"a", {both, {.text = "done"}}}}),
                           {order(), stop})}),
            says("next", "x")});
  on.go(root);
  BOOST_TEST(on.answer(root, {{"n", 1}}) == "a=done | ok");
}

BOOST_AUTO_TEST_CASE(what_a_body_wrote_before_it_had_to_wait_is_kept) {
  pause_fixture on;
  const auto asks = one_call("a", order());
  const auto root
    = custom("c", [asks](invocation_context& context) -> agent_run {
        if (!context.is_resumed())
          context.state().set("plan", "x");
        co_await context.run(asks);
      });
  on.go(root);
  BOOST_TEST(on.state_now()["plan"] == "x");
}

BOOST_AUTO_TEST_CASE(agents_that_have_changed_are_told_of_and_nothing_is_lost) {
  pause_fixture on;
  const auto waits = one_call("a", order());
  const auto root = sequential("s", {says("n", "x"), waits, says("b", "end")});
  on.go(root);
  const auto message = on.replies({{on.waits.at(0), {{"n", 1}}}});
  const auto longer = sequential(
    "s", {says("new", "x"), says("n", "x"), waits, says("b", "end")});
  BOOST_TEST(on.go(longer, message) == "s= | conflict");
  BOOST_TEST(agent_fixture::last_reason().find("'a'") != std::string::npos,
             agent_fixture::last_reason());
  const auto gone = sequential("other", {says("x", "x")});
  BOOST_TEST(on.go(gone, message) == "other= | conflict");
  BOOST_TEST(on.go(root, message) == "a=done b=end | ok");
}

BOOST_AUTO_TEST_CASE(a_lane_that_is_gone_is_told_of_and_nothing_hangs) {
  pause_fixture on;
  const auto waits = one_call("y", order());
  on.go(parallel("p", {says("x", "x"), waits}));
  const auto message = on.replies({{on.waits.at(0), {{"n", 1}}}});
  BOOST_TEST(on.go(parallel("p", {says("x", "x")}), message)
             == "p= | conflict");
  BOOST_TEST(on.go(parallel("p", {says("x", "x"), waits}), message)
             == "y=done | ok");
}

BOOST_AUTO_TEST_CASE(a_question_of_a_run_that_failed_is_not_open) {
  pause_fixture on;
  const auto root = parallel({.name = "p", .lanes_max = 1},
                             {one_call("y", pay()), fails("bad")});
  on.go(root);
  std::string id;
  for (const auto& said : on.events(on.key))
    if (!said->long_running_tool_ids.empty())
      id = said->long_running_tool_ids.front();
  BOOST_TEST(on.go(root, on.replies({{id, yes}})) == "| invalid_argument");
  BOOST_TEST(on.state_now() == json::object());
}

BOOST_AUTO_TEST_CASE(a_rejection_holds_whatever_callbacks_make_of_the_call) {
  pause_fixture on;
  const auto careful
    = pay([](const json& args) { return args.value("sum", 0) > 100; });
  const auto lowers = std::make_shared<std::atomic<bool>>(false);
  const auto root = llm(
    {.name = "a",
     .model
     = scripted({{"a", {calling("pay", {{"sum", 500}}), {.text = "done"}}}}),
     .tools = {careful},
     .before_tool = {
       [lowers](const tool&, json& args, tool_context&) -> std::optional<json> {
         if (*lowers)
           args["sum"] = 99;
         return std::nullopt;
       }}});
  on.go(root);
  *lowers = true;
  on.answer(root, no);
  BOOST_TEST(on.state_now() == json::object());
}

BOOST_AUTO_TEST_CASE(questions_of_one_turn_may_be_answered_one_by_one) {
  pause_fixture on;
  scripted_reply three;
  three.function_calls = {{"", "pay", json{{"sum", 1}}},
                          {"", "order", json::object()},
                          {"", "pay", json{{"sum", 2}}}};
  const auto root
    = uses("a", scripted({{"a", {three, {.text = "done"}}}}), {pay(), order()});
  on.go(root);
  const auto open = on.waits;
  BOOST_TEST_REQUIRE(open.size() == 3U);
  for (const auto& id : open) {
    const json with = on.name_of(id) == "order" ? json{{"n", 1}} : yes;
    on.go(root, on.replies({{id, with}}));
  }
  BOOST_TEST(on.waits.empty());
  BOOST_TEST(on.events(on.key).back()->text() == "done");
  BOOST_TEST(on.state_now() == json({{"paid", 2}, {"ordered", 1}}));
}

BOOST_AUTO_TEST_CASE(a_run_that_was_taken_over_gives_back_its_own_claim_alone) {
  pause_fixture on;
  const auto model = std::make_shared<held_model>();
  const auto root = sequential("s", {one_call("a", pay()), asks("b", model)});
  on.go(root);
  const auto message = on.replies({{on.waits.at(0), yes}});
  run_options beside{.policy = run_policy::interleave};
  auto first = on.runtime.run(root, on.key, message, beside);
  model->asked.await(1);
  beside.take_over = true;
  auto second = on.runtime.run(root, on.key, message, beside);
  model->asked.await(2);
  first.cancel();
  BOOST_TEST(code_of(first.wait().get()) == "cancelled");
  BOOST_TEST(agent_fixture::show(on.runtime.run(
               root, on.key, message, {.policy = run_policy::interleave}))
             == "| conflict");
  model->answer("end");
  BOOST_TEST(code_of(second.wait().get()) == "ok");
}

BOOST_AUTO_TEST_CASE(
  a_plugin_that_answers_for_the_run_leaves_the_question_open) {
  runtime_options options;
  const auto closed = std::make_shared<std::atomic<bool>>(false);
  options.plugins
    = {{.name = "closed",
        .before_run = [closed](callback_context&) -> std::optional<content> {
          return *closed ? std::optional(text("later")) : std::nullopt;
        }}};
  pause_fixture on(std::move(options));
  const auto root = one_call("a", pay());
  on.go(root);
  const auto message = on.replies({{on.waits.at(0), yes}});
  *closed = true;
  BOOST_TEST(on.go(root, message) == "model=later a= | ok");
  *closed = false;
  BOOST_TEST(on.go(root, message) == "a= a=done | ok");
}

BOOST_AUTO_TEST_CASE(a_run_that_fails_at_its_very_end_has_not_paused) {
  runtime_options options;
  const auto fails_now = std::make_shared<std::atomic<bool>>(true);
  options.plugins
    = {{.name = "bad", .after_run = [fails_now](callback_context&) {
          if (*fails_now)
            throw std::runtime_error("no");
        }}};
  pause_fixture on(std::move(options));
  const auto root = one_call("a", pay());
  BOOST_TEST(on.go(root) == "a= a= | callback_failed");
  std::string id;
  for (const auto& said : on.events(on.key))
    if (!said->long_running_tool_ids.empty())
      id = said->long_running_tool_ids.front();
  *fails_now = false;
  BOOST_TEST(on.go(root, on.replies({{id, yes}})) == "| invalid_argument");
}

BOOST_AUTO_TEST_CASE(an_agent_of_its_own_turn_sees_what_its_call_came_to) {
  pause_fixture on;
  const auto seen = std::make_shared<std::vector<std::size_t>>();
  const auto model = std::make_shared<made_model>(
    [seen](const model_request& request, const model_reply& reply) {
      std::size_t answers = 0;
      for (const auto& said : request.contents)
        for (const auto& element : said->parts)
          answers += element.response() != nullptr ? 1U : 0U;
      seen->push_back(answers);
      content said("model", {});
      if (seen->size() == 1)
        said.parts.emplace_back(function_call{"", "pay", json::object()});
      else
        said.parts.emplace_back("fine");
      reply(model_response(std::move(said)));
    });
  const auto root = llm({.name = "a",
                         .model = model,
                         .tools = {pay()},
                         .include_contents = include_contents::none});
  on.go(root);
  const auto id = on.waits.at(0);
  on.go(root, user_text("hm"));
  on.go(root, on.replies({{id, yes}}));
  BOOST_TEST(seen->back() == 1U);
}

BOOST_AUTO_TEST_CASE(a_malformed_question_in_the_history_harms_nobody) {
  pause_fixture on;
  for (const auto& args : {json{{"originalFunctionCall", {{"id", nullptr}}}},
                           json{{"originalFunctionCall", 5}},
                           json::object()}) {
    event odd(content(
      "model", {part(function_call{"q", "adk_request_confirmation", args})}));
    odd.author = "a";
    odd.long_running_tool_ids = {"q"};
    on.runtime.sessions().append_event(on.key, odd).value();
  }
  BOOST_TEST(on.go(one_call("a", pay())) == "a= a= a= | ok");
  BOOST_TEST(on.go(one_call("b", order())) == "b= b= b= | ok");
}

BOOST_AUTO_TEST_CASE(an_agent_of_another_kind_is_told_of) {
  pause_fixture on;
  const auto waits = one_call("y", order());
  on.go(parallel("p", {waits}));
  const auto message = on.replies({{on.waits.at(0), {{"n", 1}}}});
  BOOST_TEST(on.go(sequential("p", {waits}), message) == "p= | conflict");
  BOOST_TEST(on.go(parallel("p", {waits}), message) == "y=done | ok");
}

BOOST_AUTO_TEST_SUITE_END()
