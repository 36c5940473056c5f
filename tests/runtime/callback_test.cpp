// Callbacks around agents, models and tools: their answers, and the events that
// carry their changes.

#include "agent_fixture.hpp"
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <memory>
#include <string>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(callbacks)

namespace {

content words(const std::string& said) {
  return content("model", {part(said)});
}

model_response answer(const std::string& said) {
  return model_response(words(said));
}

/// A callback that writes and does not answer.
agent_callback writes(const std::string& key, const json& data) {
  return
    [key, data](callback_context& context) { context.state().set(key, data); };
}

agent_callback says_instead(const std::string& said) {
  return [said](callback_context&) { return std::optional(words(said)); };
}

/// The texts and state deltas of a session's events, without the user's
/// message: `hello {"a":1}; `.
std::string deltas(runtime_fixture& on, const session_key& key) {
  std::string all;
  for (const auto& said : on.events(key))
    if (said->author != "user")
      all += said->text() + to_text(said->actions.state_delta.to_json()) + "; ";
  return all;
}

model_ptr failing() {
  return scripted({{"*", {{.failure = "no luck"}}}});
}

} // namespace

// -- agents ----

BOOST_AUTO_TEST_CASE(content_from_before_agent_takes_the_place_of_the_agent) {
  agent_fixture on;
  bool ran = false;
  bool after = false;
  const auto a
    = custom({.name = "a",
              .run = [&ran](invocation_context&) -> agent_run {
                ran = true;
                co_return;
              },
              .before_agent = {says_instead("no")},
              .after_agent = {[&after](callback_context&) { after = true; }}});
  // A sequence continues with the next agent.
  BOOST_TEST(on.perform(sequential("both", {a, says("b", "yes")}))
             == "a=no b=yes | ok");
  BOOST_TEST(!ran);
  BOOST_TEST(!after);
}

BOOST_AUTO_TEST_CASE(every_kind_of_agent_has_callbacks) {
  agent_fixture on;
  const std::vector before{says_instead("before")};
  const std::vector after{says_instead("after")};
  BOOST_TEST(on.perform(sequential({.name = "a", .before_agent = before},
                                   {says("b", "1")}))
             == "a=before | ok");
  BOOST_TEST(
    on.perform(parallel({.name = "a", .after_agent = after}, {says("b", "1")}))
    == "b=1 a=after | ok");
  BOOST_TEST(on.perform(loop({.name = "a",
                              .max_iterations = 2,
                              .before_agent = {writes("k", 1)},
                              .after_agent = after},
                             {says("b", "1")}))
             == "a= b=1 b=1 a=after | ok");
  BOOST_TEST(
    on.perform(llm({.name = "a", .model = echo(), .after_agent = after}))
    == "a= a=after | ok");
}

BOOST_AUTO_TEST_CASE(the_first_answer_of_a_list_counts_and_ends_it) {
  agent_fixture on;
  const auto a
    = llm({.name = "a",
           .model = echo(),
           .before_agent
           = {writes("first", 1), says_instead("second"), writes("third", 3)}});
  BOOST_TEST(on.perform(a) == "a=second | ok");
  // One event carries the changes of all callbacks that ran.
  BOOST_TEST(deltas(on, on.key) == R"(second{"first":1}; )");
}

BOOST_AUTO_TEST_CASE(what_agent_callbacks_write_goes_into_events_of_their_own) {
  agent_fixture on;
  const auto a = llm({.name = "a",
                      .model = echo(),
                      .instruction = "{before}",
                      .before_agent = {writes("before", 1)},
                      .after_agent = {writes("after", 2)}});
  BOOST_TEST(on.perform(a) == "a= a=1 a= | ok");
  BOOST_TEST(deltas(on, on.key) == R"({"before":1}; 1{}; {"after":2}; )");
}

BOOST_AUTO_TEST_CASE(a_callback_that_only_acts_is_not_lost) {
  agent_fixture on;
  const auto stops = custom(
    {.name = "stops",
     .run = [](invocation_context&) -> agent_run { co_return; },
     .before_agent
     = {[](callback_context& context) { context.actions().escalate = true; }}});
  BOOST_TEST(on.perform(loop({.name = "l", .max_iterations = 5},
                             {stops, says("never", "1")}))
             == "stops= | ok");
  BOOST_TEST(on.events(on.key).back()->actions.escalate);
}

BOOST_AUTO_TEST_CASE(a_callback_that_only_writes_temp_leaves_no_event) {
  agent_fixture on;
  const auto a = llm({.name = "a",
                      .model = echo(),
                      .instruction = "{temp:step}",
                      .before_agent = {writes("temp:step", 7)}});
  BOOST_TEST(on.perform(a) == "a=7 | ok");
}

BOOST_AUTO_TEST_CASE(output_key_takes_what_before_agent_said) {
  agent_fixture on;
  const auto a = llm({.name = "a",
                      .model = echo(),
                      .output_key = "out",
                      .before_agent = {says_instead("kept")}});
  on.perform(a);
  BOOST_TEST(on.state_now()["out"] == "kept");
}

BOOST_AUTO_TEST_CASE(a_callback_may_be_a_coroutine) {
  agent_fixture on;
  const auto key = on.open("other");
  const auto a = llm(
    {.name = "a",
     .model = echo(),
     .before_agent = {[&](callback_context&) -> task<std::optional<content>> {
       auto said = change({{"from", "callback"}});
       const auto stored
         = co_await on.sessions().append_event(key, std::move(said));
       co_return words("stored " + std::to_string(stored ? 1 : 0));
     }}});
  BOOST_TEST(on.perform(a) == "a=stored 1 | ok");
  BOOST_TEST(on.state(key)["from"] == "callback");
}

BOOST_AUTO_TEST_CASE(a_callback_that_throws_ends_the_agent_and_leaves_nothing) {
  agent_fixture on;
  const auto a = llm({.name = "a",
                      .model = echo(),
                      .before_agent = {[](callback_context& context) {
                        context.state().set("ghost", 1);
                        throw std::runtime_error("broken");
                      }}});
  BOOST_TEST(on.perform(a) == "| callback_failed");
  BOOST_TEST(
    agent_fixture::last_reason().find("before_agent callback of agent 'a'")
    != std::string::npos);
  BOOST_TEST(on.state_now() == json::object());
  const auto coded
    = llm({.name = "a",
           .model = echo(),
           .after_model = {[](callback_context&, model_response&) {
             throw error(errc::conflict, "mine");
           }}});
  BOOST_TEST(on.perform(coded) == "| conflict");
}

// -- models ----

BOOST_AUTO_TEST_CASE(before_model_may_change_the_request) {
  agent_fixture on;
  const auto a
    = llm({.name = "a",
           .model = echo(),
           .instruction = "one",
           .before_model = {[](callback_context&, model_request& request) {
             request.system_instruction += " two";
           }}});
  BOOST_TEST(on.perform(a) == "a=one two | ok");
}

BOOST_AUTO_TEST_CASE(an_answer_of_before_model_is_no_model_call) {
  agent_fixture on;
  const auto a
    = llm({.name = "a",
           .model = failing(),
           .output_key = "out",
           .before_model = {[](callback_context& context, model_request&) {
             context.state().set("asked", true);
             return std::optional(answer("cached"));
           }}});
  BOOST_TEST(on.perform(a, {.model_calls_max = 0}) == "a=cached | ok");
  // The change is in the event of the answer.
  BOOST_TEST(deltas(on, on.key) == R"(cached{"asked":true,"out":"cached"}; )");
}

BOOST_AUTO_TEST_CASE(after_model_may_change_or_replace_the_answer) {
  agent_fixture on;
  const auto changes = llm(
    {.name = "a",
     .model = echo(),
     .instruction = "x",
     .after_model = {[](callback_context& context, model_response& given) {
       context.state().set("heard", given.content.text());
       given.content = words("changed");
     }}});
  BOOST_TEST(on.perform(changes) == "a=changed | ok");
  BOOST_TEST(on.state_now()["heard"] == "x");
  const auto replaces
    = llm({.name = "a",
           .model = echo(),
           .after_model = {[](callback_context&, model_response&) {
                             return std::optional(answer("first"));
                           },
                           [](callback_context&, model_response&) {
                             return std::optional(answer("second"));
                           }}});
  BOOST_TEST(on.perform(replaces) == "a=first | ok");
}

BOOST_AUTO_TEST_CASE(on_model_error_may_answer) {
  agent_fixture on;
  const auto a = llm(
    {.name = "a",
     .model = failing(),
     .instruction = "try",
     .before_model = {[](callback_context& context, model_request&) {
       context.state().set("before", 1);
     }},
     .on_model_error
     = {[](callback_context&, const model_request& request, const error& why) {
         return std::optional(
           answer(request.system_instruction.substr(0, 3) + ": "
                  + (why.code() == errc::model_failed ? "failed" : "other")));
       }}});
  BOOST_TEST(on.perform(a) == "a=try: failed | ok");
  BOOST_TEST(on.state_now()["before"] == 1);
}

BOOST_AUTO_TEST_CASE(a_model_error_without_an_answer_leaves_nothing_behind) {
  agent_fixture on;
  int seen = 0;
  const auto a
    = llm({.name = "a",
           .model = failing(),
           .before_model = {[](callback_context& context, model_request&) {
             context.state().set("ghost", 1);
           }},
           .on_model_error
           = {[&seen](callback_context&, const model_request&, const error&) {
               ++seen;
             }}});
  BOOST_TEST(on.perform(a) == "| model_failed");
  BOOST_TEST(seen == 1);
  BOOST_TEST(on.state_now() == json::object());
}

BOOST_AUTO_TEST_CASE(the_end_of_a_run_is_no_model_error) {
  agent_fixture on;
  bool called = false;
  const auto a
    = llm({.name = "a",
           .model = echo(),
           .on_model_error
           = {[&called](callback_context&, const model_request&, const error&) {
               called = true;
               return std::optional(answer("no"));
             }}});
  BOOST_TEST(on.perform(a, {.model_calls_max = 0}) == "| limit_exceeded");
  BOOST_TEST(!called);
}

// -- tools ----

BOOST_AUTO_TEST_CASE(a_result_of_before_tool_takes_the_place_of_the_tool) {
  agent_fixture on;
  bool ran = false;
  const auto a
    = llm({.name = "a",
           .model = scripted({{"a", {calling("count"), {.text = "done"}}}}),
           .tools = {tool_of("count",
                             [&ran](const json&, tool_context&) -> json {
                               ran = true;
                               return 1;
                             })},
           .before_tool = {[](const tool& which, json&, tool_context& context) {
             context.state().set("skipped", which.name());
             return std::optional<json>(2);
           }},
           // Also called after an answer of before_tool.
           .after_tool
           = {[](const tool&, const json&, tool_context&, const json& result) {
               auto wrapped = json::object();
               wrapped["was"] = result;
               return std::optional(wrapped);
             }}});
  BOOST_TEST(on.perform(a) == "a= a= a=done | ok");
  BOOST_TEST(!ran);
  BOOST_TEST(responses(on, on.key) == json({{{"was", 2}}}));
  // The change is in the event of the responses.
  BOOST_TEST(deltas(on, on.key) == R"({}; {"skipped":"count"}; done{}; )");
}

BOOST_AUTO_TEST_CASE(before_tool_may_change_the_arguments) {
  agent_fixture on;
  const tool doubles(
    {.name = "doubles",
     .parameters = {{"type", "object"},
                    {"properties", {{"n", {{"type", "integer"}}}}},
                    {"required", {"n"}}},
     .run = [](const json& args, tool_context&) -> json {
       return 2 * args.at("n").get<int>();
     }});
  const auto a
    = llm({.name = "a",
           .model = scripted({{"a", {calling("doubles"), {.text = "done"}}}}),
           .tools = {doubles},
           .before_tool = {[](const tool&, json& args, tool_context&) {
             args["n"] = 21;
             return std::optional<json>();
           }}});
  on.perform(a);
  BOOST_TEST(responses(on, on.key) == json({{{"result", 42}}}));
  // The call in the log is unchanged.
  BOOST_TEST(on.events(on.key)[1]->content.parts[0].call()->args.data()
             == json::object());
}

BOOST_AUTO_TEST_CASE(on_tool_error_may_give_a_result) {
  agent_fixture on;
  const auto throws
    = tool_of("throws", [](const json&, tool_context& context) -> json {
        context.state().set("ghost", 1);
        throw std::runtime_error("broken");
      });
  const auto a = llm(
    {.name = "a",
     .model = scripted({{"a", {calling("throws"), {.text = "done"}}}}),
     .tools = {throws},
     .on_tool_error
     = {[](const tool& which, const json&, tool_context&, const error& why) {
         return std::optional<json>(
           {{"instead", which.name()},
            {"told", why.message().find("broken") != std::string::npos}});
       }}});
  BOOST_TEST(on.perform(a) == "a= a= a=done | ok");
  BOOST_TEST(responses(on, on.key)
             == json({{{"instead", "throws"}, {"told", true}}}));
}

BOOST_AUTO_TEST_CASE(a_tool_callback_that_throws_is_an_error_result) {
  agent_fixture on;
  const auto a
    = llm({.name = "a",
           .model = scripted({{"a", {calling("ok"), {.text = "done"}}}}),
           .tools = {tool_of("ok",
                             [](const json&, tool_context& context) -> json {
                               context.state().set("ghost", 1);
                               return 1;
                             })},
           .after_tool
           = {[](const tool&, const json&, tool_context&, const json&)
                -> std::optional<json> { throw std::runtime_error("late"); }}});
  BOOST_TEST(on.perform(a) == "a= a= a=done | ok");
  const auto told = responses(on, on.key)[0].value("error", "");
  BOOST_TEST(told.find("late") != std::string::npos, told);
  BOOST_TEST(on.state_now() == json::object());
}

BOOST_AUTO_TEST_SUITE_END()
