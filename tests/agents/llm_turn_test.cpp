// The instruction of an LLM agent's turn, and the events of its answers.

#include "troupe/agents/turns/llm_turn.hpp"

#include "troupe/contexts/lanes/host.hpp"

#include "../await.hpp"
#include "../outcome.hpp"
#include "shown_content.hpp"
#include <boost/test/unit_test.hpp>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(instructions)

namespace {

result<std::string> now_resolve(const instruction& source,
                                const readonly_context& context) {
  return now(resolve_instruction(source, context));
}

} // namespace

BOOST_AUTO_TEST_CASE(a_template_is_filled_and_a_provider_used_as_it_is) {
  const run_facts facts;
  state_snapshot known;
  known.session.set("topic", json("owls"));
  const readonly_context context(facts, "writer", state(known));
  const auto provider = [](const readonly_context& asked) {
    return asked.agent_name() + " {topic} "
           + asked.state().get<std::string>("topic");
  };
  BOOST_TEST(now_resolve("On {topic}", context).value() == "On owls");
  BOOST_TEST(now_resolve(instruction(), context).value().empty());
  BOOST_TEST(now_resolve(provider, context).value() == "writer {topic} owls");
  BOOST_TEST(code_of(now_resolve("On {mice}", context)) == "template_error");
}

BOOST_AUTO_TEST_CASE(an_instruction_carries_its_rules_for_braces) {
  const run_facts facts;
  state_snapshot known;
  known.session.set("topic", json("owls"));
  const readonly_context context(facts, "writer", state(known));
  const instruction in_any("On {{topic}}", template_braces::any);
  BOOST_TEST(now_resolve("On {{topic}}", context).value() == "On {{topic}}");
  BOOST_TEST(now_resolve(in_any, context).value() == "On owls");
  const auto copy = in_any;
  BOOST_TEST(now_resolve(copy, context).value() == "On owls");
}

BOOST_AUTO_TEST_CASE(a_provider_that_throws_is_a_failed_callback) {
  const run_facts facts;
  const readonly_context context(facts, "writer", state());
  using provider = instruction_provider;
  const provider standard
    = [](const auto&) -> std::string { throw std::runtime_error("no idea"); };
  const provider number = [](const auto&) -> std::string { throw 7; };
  const provider own = [](const auto& asked) {
    return asked.state().template get<std::string>("topic");
  };
  const auto failed = now_resolve(standard, context);
  BOOST_TEST(code_of(failed) == "callback_failed");
  BOOST_TEST(reason_of(failed).find("'writer'") != std::string::npos);
  BOOST_TEST(reason_of(failed).find("no idea") != std::string::npos);
  BOOST_TEST(code_of(now_resolve(number, context)) == "callback_failed");
  BOOST_TEST(code_of(now_resolve(own, context)) == "not_found");
}

BOOST_AUTO_TEST_CASE(a_provider_may_be_a_coroutine) {
  const run_facts facts;
  const readonly_context context(facts, "writer", state());
  const auto provider = [](const readonly_context& asked) -> task<std::string> {
    co_return asked.agent_name() + " {topic}";
  };
  const auto broken = [](const readonly_context&) -> task<std::string> {
    throw std::runtime_error("no idea");
    co_return "";
  };
  BOOST_TEST(now_resolve(provider, context).value() == "writer {topic}");
  const auto failed = now_resolve(broken, context);
  BOOST_TEST(code_of(failed) == "callback_failed");
  BOOST_TEST(reason_of(failed).find("no idea") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(response_events)

namespace {

struct asked_writer {
  asked_writer() { options.output_key = "draft"; }

  event answers(std::vector<part> parts, bool partial = false) {
    model_response response(content("model", std::move(parts)));
    response.partial = partial;
    return make_response_event(options, std::move(response), time).value();
  }

  /// Returns the state delta of the event.
  static std::string change(const event& said) {
    return to_text(said.actions.state_delta.to_json());
  }

  llm_options options;
  simulated_environment time{1};
};

} // namespace

BOOST_FIXTURE_TEST_CASE(the_text_of_a_final_answer_goes_to_the_output_key,
                        asked_writer) {
  BOOST_TEST(change(answers({"An ", "owl."})) == R"({"draft":"An owl."})");
  BOOST_TEST(change(answers({thought("hm"), "owl", thought("yes"), "s"}))
             == R"({"draft":"owls"})");
  BOOST_TEST(change(answers({""})) == R"({"draft":""})");
}

BOOST_FIXTURE_TEST_CASE(answers_without_final_text_change_nothing,
                        asked_writer) {
  BOOST_TEST(change(answers({})) == "{}");
  BOOST_TEST(change(answers({thought("only a thought")})) == "{}");
  BOOST_TEST(change(answers({"wait", function_call{"c", "f", json::object()}}))
             == "{}");
  BOOST_TEST(change(answers({"a piece"}, true)) == "{}");
  BOOST_TEST(change(answers({function_response{"c", "f", json::object()}}))
             == "{}");
}

BOOST_FIXTURE_TEST_CASE(the_output_key_may_have_any_scope, asked_writer) {
  for (const auto* key : {"app:draft", "user:draft", "temp:draft"}) {
    options.output_key = key;
    BOOST_TEST(change(answers({"owl"}))
               == R"({")" + std::string(key) + R"(":"owl"})");
  }
  options.output_key.clear();
  BOOST_TEST(change(answers({"owl"})) == "{}");
}

// The ids that models give to calls need not be unique in a session.
BOOST_FIXTURE_TEST_CASE(calls_get_ids_of_our_own, asked_writer) {
  const auto said = answers({function_call{"", "f", json::object()},
                             function_call{"call_0", "f", json::object()},
                             function_call{"", "f", json::object()}});
  const auto id = [&said](std::size_t index) {
    return said.content.parts[index].call()->id;
  };
  BOOST_TEST(id(0).starts_with("adk-"));
  BOOST_TEST(id(1).starts_with("adk-"));
  BOOST_TEST(id(2).starts_with("adk-"));
  BOOST_TEST(id(0) != id(2));
}

BOOST_FIXTURE_TEST_CASE(an_answer_keeps_its_wire_fields, asked_writer) {
  model_response response(content("", {"cut off"}));
  response.extra = json{{"finishReason", "MAX_TOKENS"}};
  const auto said = make_response_event(options, response, time).value();
  BOOST_TEST(said.field("finishReason") == "MAX_TOKENS");
  BOOST_TEST(said.content.role == "model");
  BOOST_TEST(!said.partial);
  BOOST_TEST(answers({"a piece"}, true).partial);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(tool_events)

namespace {

tool_call answered(std::string id, result<json> outcome) {
  tool_call done;
  done.call = {std::move(id), "f", json::object()};
  done.outcome = std::move(outcome);
  return done;
}

tool_call recording(std::string id, operation_kind kind, json operand) {
  auto done = answered(std::move(id), json::object());
  done.recorded.record("n", kind, std::move(operand)).value();
  return done;
}

} // namespace

BOOST_AUTO_TEST_CASE(responses_stand_in_call_order) {
  const auto said = make_tool_event({answered("c2", json{{"a", 1}}),
                                     answered("c1", json(7)),
                                     answered("c3", json())});
  BOOST_TEST(shown(said.content)
             == R"(user: c2={"a":1} c1={"result":7} c3={"result":null})");
}

BOOST_AUTO_TEST_CASE(attached_media_are_parts_of_their_response) {
  auto pictured = answered("c1", json("dark"));
  pictured.attached = {inline_data("\1\2\3", "image/png", "a.png"),
                       inline_data("x", "text/plain")};
  const auto said = make_tool_event({pictured, answered("c2", json(7))});
  const auto wire = to_json(said.content)["parts"];
  BOOST_TEST(to_text(wire[0]["functionResponse"]["response"])
             == R"({"result":"dark"})");
  BOOST_TEST(to_text(wire[0]["functionResponse"]["parts"]) == to_text(R"([
    {"inlineData": {"data": "AQID", "mimeType": "image/png",
                    "displayName": "a.png"}},
    {"inlineData": {"data": "eA==", "mimeType": "text/plain"}}])"_json));
  BOOST_TEST(!wire[1]["functionResponse"].contains("parts"));
}

BOOST_AUTO_TEST_CASE(a_failed_call_is_an_error_result) {
  const auto said = make_tool_event(
    {answered("c1", error(errc::tool_failed, "no such file"))});
  BOOST_TEST(shown(said.content) == R"(user: c1={"error":"no such file"})");
}

BOOST_AUTO_TEST_CASE(deltas_are_merged_in_call_order) {
  using kind = operation_kind;
  const auto shown = [](const std::vector<tool_call>& calls) {
    const auto said = make_tool_event(calls);
    return to_text(said.actions.state_delta.to_json())
           + to_text(said.actions.state_delta.typed_to_json());
  };
  BOOST_TEST(shown({recording("a", kind::set, 1), recording("b", kind::set, 2)})
             == R"({"n":2}[])");
  BOOST_TEST(shown({recording("b", kind::set, 2), recording("a", kind::set, 1)})
             == R"({"n":1}[])");
  BOOST_TEST(shown({recording("a", kind::set, 1), recording("b", kind::add, 2)})
             == R"({"n":1}[{"key":"n","op":"add","value":2}])");
  BOOST_TEST(shown({answered("a", json()), answered("b", json())}) == "{}[]");
}

BOOST_AUTO_TEST_CASE(actions_are_merged) {
  auto first = answered("c1", json::object());
  first.actions.escalate = true;
  first.actions.transfer_to_agent = "early";
  first.actions.artifact_delta = {{"a", 1}, {"b", 1}};
  first.actions.extra
    = json{{"requestedToolConfirmations", {{"c1", json::object()}}}};
  auto second = answered("c2", json::object());
  second.actions.skip_summarization = true;
  second.actions.transfer_to_agent = "late";
  second.actions.artifact_delta = {{"b", 2}};
  const auto said = make_tool_event({first, answered("c3", json()), second});
  BOOST_TEST(said.actions.escalate);
  BOOST_TEST(said.actions.skip_summarization);
  BOOST_TEST(said.actions.transfer_to_agent == "late");
  BOOST_TEST((said.actions.artifact_delta
              == std::map<std::string, std::int64_t>{{"a", 1}, {"b", 2}}));
  BOOST_TEST(to_text(said.actions.extra.data())
             == R"({"requestedToolConfirmations":{"c1":{}}})");
  BOOST_TEST(!make_tool_event({answered("c", json())}).actions.escalate);
}

BOOST_AUTO_TEST_SUITE_END()
