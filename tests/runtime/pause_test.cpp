// Runs that end because an answer has to come from outside, and the runs that
// bring it.

#include "troupe/agents/agent_tool.hpp"

#include "play.hpp"
#include "staged_store.hpp"
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::testing;

namespace {

/// Starts work that ends elsewhere.
tool order() {
  return tool({.name = "order",
               .run = [](const json&, tool_context& context) -> json {
                 context.state().add("ordered", 1);
                 return nullptr;
               },
               .long_running = true});
}

/// Pays, if the user lets it; `paid` counts.
tool pay(confirmation_rule rule = true) {
  return tool({.name = "pay",
               .run = [](const json& args, tool_context& context) -> json {
                 context.state().add("paid", 1);
                 return {{"paid", args.value("sum", 0)}};
               },
               .require_confirmation = std::move(rule)});
}

/// Asks `model` and calls tools.
agent uses(const std::string& name,
           const model_ptr& model,
           std::vector<tool> tools) {
  return llm({.name = name, .model = model, .tools = std::move(tools)});
}

/// An agent that calls one tool and then says what it got.
agent one_call(const std::string& name, const tool& called) {
  return uses(name,
              scripted({{name, {calling(called.name()), {.text = "done"}}}}),
              {called});
}

/// A stage for runs that pause.
class desk : public play {
public:
  using play::play;

  /// Runs and keeps what the run waits for.
  std::string go(const agent& root, content message = user_text("go")) {
    auto started = runtime.run(root, key, std::move(message));
    const auto line = follow(started);
    waits = started.waits_for();
    return line;
  }

  /// Answers the open call number `index`.
  std::string
  answer(const agent& root, const json& with, std::size_t index = 0) {
    return go(root, replies({{waits.at(index), with}}));
  }

  /// A message that answers calls by their ids.
  content replies(const std::vector<std::pair<std::string, json>>& all) {
    content message("user", {});
    for (const auto& [id, with] : all)
      message.parts.emplace_back(function_response{id, name_of(id), with});
    return message;
  }

  /// The name of the call with that id.
  std::string name_of(const std::string& id) {
    for (const auto& said : events(key))
      for (const auto& element : said.content.parts)
        if (element.call() != nullptr && element.call()->id == id)
          return element.call()->name;
    return "order";
  }

  /// A session with all but the newest event: as after a crash before a pause.
  session_key cut_off() {
    const auto made = open("other");
    const auto known = events(key);
    for (std::size_t index = 0; index + 1 < known.size(); ++index)
      runtime.sessions().append_event(made, *known[index]).value();
    return made;
  }

  std::vector<std::string> waits;
};

const json yes{{"confirmed", true}};
const json no{{"confirmed", false}};

} // namespace

BOOST_AUTO_TEST_SUITE(pauses)

// -- long-running tools ------------------------------------------------------

BOOST_AUTO_TEST_CASE(a_long_running_tool_without_a_result_ends_the_run) {
  desk on;
  const auto root = one_call("a", order());
  // The call, what the tool wrote, and where the run paused.
  BOOST_TEST(on.go(root) == "a= a= a= | ok");
  const auto events = on.events(on.key);
  const auto& call = *events[1]->content.parts[0].call();
  BOOST_TEST(on.waits == std::vector{call.id});
  BOOST_TEST(events[1]->long_running_tool_ids == std::vector{call.id});
  BOOST_TEST(is_final(*events[1]));
  BOOST_TEST(on.state_now() == json({{"ordered", 1}}));
}

BOOST_AUTO_TEST_CASE(its_response_lets_the_agent_go_on) {
  desk on;
  const auto model
    = scripted({{"a", {calling("order"), {.text = "it is ${input}"}}}});
  const auto root = uses("a", model, {order()});
  on.go(root);
  BOOST_TEST(on.answer(root, {{"ticket", 7}}) == "a=it is go | ok");
  BOOST_TEST(on.waits.empty());
}

BOOST_AUTO_TEST_CASE(a_long_running_tool_with_a_result_is_like_any_other) {
  desk on;
  const tool quick({.name = "order",
                    .run = [](const json&, tool_context&) -> json {
                      return {{"status", "pending"}};
                    },
                    .long_running = true});
  const auto root = one_call("a", quick);
  BOOST_TEST(on.go(root) == "a= a= a=done | ok");
  BOOST_TEST(on.waits.empty());
  // What comes later takes the place of what came at first.
  const auto id = on.events(on.key)[1]->long_running_tool_ids.at(0);
  BOOST_TEST(on.go(root, on.replies({{id, {{"status", "sent"}}}}))
             == "a=done | ok");
}

BOOST_AUTO_TEST_CASE(the_model_sees_each_call_with_its_newest_response) {
  desk on;
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
  // Another question comes first: the call is there, and waits.
  on.go(root, user_text("are you there?"));
  BOOST_TEST(seen->at(1).contents.size() == 4U);
  BOOST_TEST(
    seen->at(1).contents[2]->parts[0].response()->response->contains("status"));
  on.go(root, on.replies({{id, {{"ticket", 7}}}}));
  // The call and its answer stand at the end: that is where the model goes on.
  const auto& last = seen->at(2).contents;
  BOOST_TEST(last.size() == 5U);
  BOOST_TEST(last[3]->parts[0].call()->id == id);
  BOOST_TEST(last[4]->parts[0].response()->response.data()
             == json({{"ticket", 7}}));
}

BOOST_AUTO_TEST_CASE(the_other_calls_of_the_turn_are_answered_at_once) {
  desk on;
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
  desk on;
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

// -- confirmation ------------------------------------------------------------

BOOST_AUTO_TEST_CASE(
  a_tool_that_needs_it_is_not_called_before_the_user_allows) {
  desk on;
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
  desk on;
  const auto root = one_call("a", pay());
  on.go(root);
  BOOST_TEST(on.answer(root, no) == "a= a=done | ok");
  BOOST_TEST(on.state_now() == json::object());
  const auto told = responses(on, on.key).back().value("error", "");
  BOOST_TEST(told.find("rejected") != std::string::npos, told);
}

BOOST_AUTO_TEST_CASE(a_rule_says_which_calls_need_it) {
  desk on;
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
  desk on;
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
  // It was not the rule of the tool's options: the tool decides.
  BOOST_TEST(responses(on, on.key).back()
             == json({{"confirmed", false}, {"days", 3}}));
}

BOOST_AUTO_TEST_CASE(arguments_that_do_not_fit_are_not_asked_about) {
  desk on;
  const tool strict(
    {.name = "strict",
     .parameters = {{"type", "object"}, {"required", {"sum"}}},
     .run = [](const json&, tool_context&) -> json { return 1; },
     .require_confirmation = true});
  BOOST_TEST(on.go(one_call("a", strict)) == "a= a= a=done | ok");
  BOOST_TEST(on.waits.empty());
}

BOOST_AUTO_TEST_CASE(a_question_that_was_written_by_others_does_not_count) {
  desk on;
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

// -- what a message may answer -----------------------------------------------

BOOST_AUTO_TEST_CASE(a_message_that_answers_nothing_is_refused) {
  desk on;
  const auto root = one_call("a", pay());
  on.go(root);
  const auto before = on.events(on.key).size();
  const auto refused = [&](const content& message, const std::string& why) {
    BOOST_TEST(on.play::show(on.runtime.run(root, on.key, message))
               == "| invalid_argument");
    BOOST_TEST(play::last_reason().find(why) != std::string::npos,
               play::last_reason());
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
  // Nothing was lost by it.
  BOOST_TEST(on.go(root, on.replies({{id, yes}})) == "a= a=done | ok");
}

BOOST_AUTO_TEST_CASE(answers_for_two_runs_come_in_two_messages) {
  desk on;
  const auto a = one_call("a", order());
  const auto b = one_call("b", order());
  on.go(a);
  const auto first = on.waits.at(0);
  on.go(b);
  const auto second = on.waits.at(0);
  BOOST_TEST(on.go(a, on.replies({{first, {{"n", 1}}}, {second, {{"n", 2}}}}))
             == "| invalid_argument");
  // Each goes on for itself, in any order.
  BOOST_TEST(on.go(b, on.replies({{second, {{"n", 2}}}})) == "b=done | ok");
  BOOST_TEST(on.go(a, on.replies({{first, {{"n", 1}}}})) == "a=done | ok");
}

BOOST_AUTO_TEST_CASE(an_answer_that_comes_again_runs_nothing_again) {
  desk on;
  const auto root = sequential(
    "s", {adds("n", "n"), one_call("a", order()), says("b", "end")});
  on.go(root);
  const auto message = on.replies({{on.waits.at(0), {{"n", 1}}}});
  BOOST_TEST(on.go(root, message) == "a=done b=end | ok");
  BOOST_TEST(on.go(root, message) == "| conflict");
  BOOST_TEST(on.state_now()["n"] == 1);
}

BOOST_AUTO_TEST_CASE(news_that_no_agent_could_hear_are_refused) {
  desk on;
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

// -- below other agents ------------------------------------------------------

BOOST_AUTO_TEST_CASE(a_sequence_goes_on_behind_what_it_has_done) {
  desk on;
  const auto root = sequential(
    "s", {adds("first", "n"), one_call("a", order()), says("b", "end")});
  BOOST_TEST(on.go(root) == "first=1 a= a= s= | ok");
  BOOST_TEST(on.answer(root, {{"n", 1}}) == "a=done b=end | ok");
  BOOST_TEST(on.state_now()["n"] == 1);
}

BOOST_AUTO_TEST_CASE(a_loop_goes_on_in_the_round_where_it_was) {
  desk on;
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
  desk on;
  const auto root
    = loop({.name = "l", .max_iterations = 3},
           {sequential("s", {escalates("up"), one_call("a", order())}),
            says("never", "x")});
  on.go(root);
  BOOST_TEST(on.answer(root, {{"n", 1}}) == "a=done | ok");
}

BOOST_AUTO_TEST_CASE(finished_lanes_are_not_run_again) {
  desk on;
  const auto root = sequential(
    "s",
    {parallel(
       "p", {adds("quick", "n"), one_call("x", order()), one_call("y", pay())}),
     tells("end", "n")});
  const auto line = on.go(root);
  // Those that wait do not stop those beside them.
  BOOST_TEST(line.find("quick=1 ") != std::string::npos, line);
  BOOST_TEST(on.waits.size() == 2U);
  const auto open = on.waits;
  const auto is_order = on.name_of(open[0]) == "order";
  const auto ordered = open[is_order ? 0 : 1];
  const auto question = open[is_order ? 1 : 0];
  // One answer at a time: the other lane stays where it is.
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
  desk on;
  const auto root
    = parallel({.name = "p"}, {one_call("x", order()), one_call("y", order())});
  on.go(root);
  const auto open = on.waits;
  on.go(root, on.replies({{open.at(0), {{"n", 1}}}, {open.at(1), {{"n", 2}}}}));
  BOOST_TEST(on.waits.empty());
  std::string said;
  for (const auto& each : on.events(on.key))
    if (each.text() == "done")
      said += each.branch + " ";
  BOOST_TEST((said == "p.x p.y " || said == "p.y p.x "), said);
}

BOOST_AUTO_TEST_CASE(a_failed_lane_is_told_once_when_all_have_ended) {
  desk on;
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
  desk on;
  const auto root = parallel("p", {fails("bad"), one_call("x", order())});
  const auto line = on.go(root);
  BOOST_TEST(line.ends_with("| callback_failed"), line);
  BOOST_TEST(on.waits.empty());
}

BOOST_AUTO_TEST_CASE(a_quorum_does_not_wait_for_lanes_that_it_does_not_need) {
  desk on;
  const auto root = parallel({.name = "p",
                              .lanes_max = 1,
                              .on_failure = lane_failures::quorum,
                              .quorum = 1},
                             {one_call("x", order()), says("y", "enough")});
  BOOST_TEST(on.go(root) == "x= x= y=enough | ok");
  BOOST_TEST(on.waits.empty());
}

BOOST_AUTO_TEST_CASE(a_quorum_that_can_only_be_reached_by_waiting_waits) {
  desk on;
  const auto root = parallel({.name = "p",
                              .lanes_max = 1,
                              .on_failure = lane_failures::quorum,
                              .quorum = 1},
                             {fails("bad"), one_call("x", order())});
  BOOST_TEST(on.go(root) == "x= x= p= | ok");
  BOOST_TEST(on.answer(root, {{"n", 1}}) == "x=done bad= | ok");
}

BOOST_AUTO_TEST_CASE(a_map_keeps_its_results_and_the_elements_that_wait) {
  desk on;
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
  // The list may change meanwhile.
  on.append(on.key, json{{"items", json::array()}});
  const auto line = on.answer(root, {{"n", 1}});
  BOOST_TEST(line
             == "asks=done worker=slow 1 m= end=[\"fast 0\",\"slow 1\",\"fast "
                "2\"] | ok");
}

BOOST_AUTO_TEST_CASE(an_agent_that_was_handed_over_to_goes_on) {
  desk on;
  const auto model
    = scripted({{"root", {calling("transfer_to_agent", {{"agent_name", "a"}})}},
                {"a", {calling("order"), {.text = "done"}}}});
  const auto root
    = llm({.name = "root", .model = model}, {uses("a", model, {order()})});
  on.go(root);
  BOOST_TEST(on.answer(root, {{"n", 1}}) == "a=done | ok");
}

BOOST_AUTO_TEST_CASE(a_hand_over_beside_a_call_that_waits_comes_after_it) {
  desk on;
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
  desk on;
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
  desk on;
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
  desk on;
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
  desk on;
  const auto inner = one_call("inner", order());
  const auto root = uses(
    "a",
    scripted({{"a", {calling("inner", {{"request", "x"}}), {.text = "done"}}}}),
    {agent_tool(inner)});
  BOOST_TEST(on.go(root) == "a= a= a=done | ok");
  const auto told = responses(on, on.key).back().value("error", "");
  BOOST_TEST(told.find("waits for an answer") != std::string::npos, told);
}

// -- between the runs --------------------------------------------------------

BOOST_AUTO_TEST_CASE(another_message_meanwhile_does_not_end_the_pause) {
  desk on;
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
  desk on;
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

BOOST_AUTO_TEST_CASE(a_question_that_no_run_waits_for_cannot_be_answered) {
  desk on;
  const auto root = one_call("a", pay());
  on.go(root);
  const auto id = on.waits.at(0);
  const auto other = on.cut_off();
  const auto line
    = play::show(on.runtime.run(root, other, on.replies({{id, yes}})));
  BOOST_TEST(line == "| invalid_argument");
  BOOST_TEST(play::last_reason().find("not open") != std::string::npos,
             play::last_reason());
  BOOST_TEST(on.state(other) == json::object());
}

BOOST_AUTO_TEST_CASE(news_about_a_call_that_nobody_waits_for_reach_its_agent) {
  desk on;
  const auto root = one_call("a", order());
  on.go(root);
  const auto id = on.waits.at(0);
  const auto other = on.cut_off();
  const auto line = play::show(
    on.runtime.run(root, other, on.replies({{id, {{"ticket", 7}}}})));
  BOOST_TEST(line == "a=done | ok");
}

BOOST_AUTO_TEST_CASE(another_program_on_the_store_brings_the_answer) {
  const staged_place place;
  desk first(place.options());
  const auto root = sequential(
    "s", {adds("n", "n"), one_call("a", order()), says("b", "end")});
  stage second(place.options());
  // It has the session in memory, as it was.
  BOOST_TEST(second.events(first.key).empty());
  first.go(root);
  const auto id = first.waits.at(0);
  auto resumed
    = second.runtime.run(root, first.key, first.replies({{id, {{"n", 1}}}}));
  BOOST_TEST(play::follow(resumed) == "a=done b=end | ok");
  BOOST_TEST(first.state_now()["n"] == 1);
}

BOOST_AUTO_TEST_CASE(a_pause_outlives_the_program) {
  const staged_place place;
  const auto root = sequential("s", {one_call("a", pay()), says("b", "end")});
  std::string id;
  {
    desk first(place.options());
    first.go(root);
    id = first.waits.at(0);
  }
  stage second(place.options());
  content message(
    "user",
    {part(function_response{id, "adk_request_confirmation", json(yes)})});
  auto resumed = second.runtime.run(root, {"press", "ann", "s"}, message);
  BOOST_TEST(play::follow(resumed) == "a= a=done b=end | ok");
}

BOOST_AUTO_TEST_CASE(what_others_keep_as_agent_state_is_left_alone) {
  desk on;
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

// -- several answers ---------------------------------------------------------

BOOST_AUTO_TEST_CASE(a_question_is_answered_once) {
  desk on;
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
    desk on;
    const auto root = one_call("a", pay());
    on.go(root);
    const auto message = on.replies({{on.waits.at(0), yes}});
    run_options how{.policy = run_policy::interleave};
    auto first = on.runtime.run(root, on.key, message, how);
    auto second = on.runtime.run(root, on.key, message, how);
    const auto codes = code_of(first.wait()) + " " + code_of(second.wait());
    BOOST_TEST((codes == "ok conflict" || codes == "conflict ok"), codes);
    BOOST_TEST(on.state_now() == json({{"paid", 1}}));
  }
}

BOOST_AUTO_TEST_CASE(of_answers_to_two_programs_one_starts_a_run) {
  const staged_place place;
  desk first(place.options());
  const auto root = one_call("a", pay());
  first.go(root);
  const auto message = first.replies({{first.waits.at(0), yes}});
  stage second(place.options());
  second.fetch(first.key);
  auto one = first.runtime.run(root, first.key, message);
  auto other = second.runtime.run(root, first.key, message);
  const auto codes = code_of(one.wait()) + " " + code_of(other.wait());
  BOOST_TEST((codes == "ok conflict" || codes == "conflict ok"), codes);
  BOOST_TEST(first.state_now() == json({{"paid", 1}}));
}

BOOST_AUTO_TEST_CASE(a_run_whose_program_ended_can_be_taken_over) {
  desk on;
  const auto root = sequential("s", {one_call("a", pay()), says("b", "end")});
  on.go(root);
  const auto message = on.replies({{on.waits.at(0), yes}});
  // Only the message of that run is left.
  const auto other = on.open("other");
  on.go(root, message);
  for (const auto& said : on.events(on.key)) {
    on.runtime.sessions().append_event(other, said).value();
    if (said.actions.extra.data().is_object() && said.author == "user")
      break;
  }
  BOOST_TEST(play::show(on.runtime.run(root, other, message)) == "| conflict");
  BOOST_TEST(play::last_reason().find("take_over") != std::string::npos);
  BOOST_TEST(
    play::show(on.runtime.run(root, other, message, {.take_over = true}))
    == "a= a=done b=end | ok");
}

BOOST_AUTO_TEST_CASE(two_open_questions_of_an_agent_are_answered_one_by_one) {
  desk on;
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
  desk on;
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
  desk on;
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
  desk on;
  const auto balance
    = tool_of("balance", [](const json&, tool_context&) -> json { return 10; });
  const auto root = one_call("a", balance);
  on.go(root);
  const auto id = on.events(on.key)[1]->content.parts[0].call()->id;
  BOOST_TEST(on.go(root, on.replies({{id, {{"result", 1'000'000}}}}))
             == "| invalid_argument");
}

// -- where it goes on --------------------------------------------------------

BOOST_AUTO_TEST_CASE(what_plugins_write_before_a_run_hides_no_answer) {
  runtime_options options;
  options.plugins
    = {{.name = "counts", .before_run = [](callback_context& context) {
          context.state().add("runs", 1);
        }}};
  desk on(std::move(options));
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
  desk on(std::move(options));
  const auto root = one_call("a", pay());
  on.go(root);
  BOOST_TEST(on.waits.size() == 1U);
  BOOST_TEST(on.answer(root, yes) == "a= a=done | ok");
}

BOOST_AUTO_TEST_CASE(an_escalation_before_the_pause_skips_no_agent) {
  desk on;
  const auto root
    = loop({.name = "l", .max_iterations = 3},
           {says("w", "x"),
            sequential("s", {escalates("up"), one_call("a", order())}),
            says("never", "x")});
  BOOST_TEST(on.go(root) == "w=x up=up a= a= l= | ok");
  BOOST_TEST(on.answer(root, {{"n", 1}}) == "a=done | ok");
}

BOOST_AUTO_TEST_CASE(a_lane_that_escalates_and_waits_still_ends_the_loop) {
  desk on;
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
  desk on;
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
  desk on;
  const auto waits = one_call("a", order());
  const auto root = sequential("s", {says("n", "x"), waits, says("b", "end")});
  on.go(root);
  const auto message = on.replies({{on.waits.at(0), {{"n", 1}}}});
  const auto longer = sequential(
    "s", {says("new", "x"), says("n", "x"), waits, says("b", "end")});
  BOOST_TEST(on.go(longer, message) == "s= | conflict");
  BOOST_TEST(play::last_reason().find("'a'") != std::string::npos,
             play::last_reason());
  const auto gone = sequential("other", {says("x", "x")});
  BOOST_TEST(on.go(gone, message) == "other= | conflict");
  BOOST_TEST(on.go(root, message) == "a=done b=end | ok");
}

BOOST_AUTO_TEST_CASE(a_lane_that_is_gone_is_told_of_and_nothing_hangs) {
  desk on;
  const auto waits = one_call("y", order());
  on.go(parallel("p", {says("x", "x"), waits}));
  const auto message = on.replies({{on.waits.at(0), {{"n", 1}}}});
  BOOST_TEST(on.go(parallel("p", {says("x", "x")}), message)
             == "p= | conflict");
  BOOST_TEST(on.go(parallel("p", {says("x", "x"), waits}), message)
             == "y=done | ok");
}

BOOST_AUTO_TEST_CASE(a_question_of_a_run_that_failed_is_not_open) {
  desk on;
  const auto root = parallel({.name = "p", .lanes_max = 1},
                             {one_call("y", pay()), fails("bad")});
  on.go(root);
  std::string id;
  for (const auto& said : on.events(on.key))
    if (!said.long_running_tool_ids.empty())
      id = said.long_running_tool_ids.front();
  BOOST_TEST(on.go(root, on.replies({{id, yes}})) == "| invalid_argument");
  BOOST_TEST(on.state_now() == json::object());
}

BOOST_AUTO_TEST_CASE(a_rejection_holds_whatever_callbacks_make_of_the_call) {
  desk on;
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
  desk on;
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
  BOOST_TEST(on.events(on.key).back().text() == "done");
  BOOST_TEST(on.state_now() == json({{"paid", 2}, {"ordered", 1}}));
}

BOOST_AUTO_TEST_CASE(a_run_that_was_taken_over_gives_back_its_own_claim_alone) {
  desk on;
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
  BOOST_TEST(code_of(first.wait()) == "cancelled");
  BOOST_TEST(play::show(on.runtime.run(
               root, on.key, message, {.policy = run_policy::interleave}))
             == "| conflict");
  model->answer("end");
  BOOST_TEST(code_of(second.wait()) == "ok");
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
  desk on(std::move(options));
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
  desk on(std::move(options));
  const auto root = one_call("a", pay());
  BOOST_TEST(on.go(root) == "a= a= | callback_failed");
  std::string id;
  for (const auto& said : on.events(on.key))
    if (!said.long_running_tool_ids.empty())
      id = said.long_running_tool_ids.front();
  *fails_now = false;
  BOOST_TEST(on.go(root, on.replies({{id, yes}})) == "| invalid_argument");
}

BOOST_AUTO_TEST_CASE(an_agent_of_its_own_turn_sees_what_its_call_came_to) {
  desk on;
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
  desk on;
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
  desk on;
  const auto waits = one_call("y", order());
  on.go(parallel("p", {waits}));
  const auto message = on.replies({{on.waits.at(0), {{"n", 1}}}});
  BOOST_TEST(on.go(sequential("p", {waits}), message) == "p= | conflict");
  BOOST_TEST(on.go(parallel("p", {waits}), message) == "y=done | ok");
}

BOOST_AUTO_TEST_SUITE_END()
