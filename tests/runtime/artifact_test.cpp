// Artifacts in runs: saved and loaded by tools, callbacks and agents, named in
// events, and used in instructions.

#include "troupe/agents/agent_tool.hpp"
#include "troupe/contexts/instruction_template.hpp"
#include "troupe/core/content.hpp"
#include "troupe/stores/artifact_store.hpp"

#include "agent_fixture.hpp"
#include "staged_store.hpp"
#include <boost/test/unit_test.hpp>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(artifacts_of_runs)

namespace {

using deltas = std::vector<std::map<std::string, std::int64_t>>;

/// The artifact deltas of a session's events, without the empty ones.
deltas named(runtime_fixture& on, const session_key& key) {
  deltas all;
  for (const auto& said : on.events(key))
    if (!said->actions.artifact_delta.empty())
      all.push_back(said->actions.artifact_delta);
  return all;
}

/// A tool that saves the argument "text" under the argument "name".
tool saves() {
  return tool_of("saves", [](const json& args, tool_context& context) -> json {
    return context.artifacts()
      .save(args.at("name"), args.at("text").get<std::string>())
      .value();
  });
}

agent echoes(instruction said) {
  return llm({.name = "a", .model = echo(), .instruction = std::move(said)});
}

std::string
text_in(runtime_fixture& on, const session_key& key, const char* name) {
  const auto found = on.runtime.artifacts()->load(key, name).value();
  return found && found->text() != nullptr ? *found->text() : "none";
}

} // namespace

BOOST_AUTO_TEST_CASE(what_tools_save_is_named_by_the_event_of_their_results) {
  agent_fixture on;
  scripted_reply both;
  both.function_calls
    = {{"", "saves", json{{"name", "a.txt"}, {"text", "one"}}},
       {"", "saves", json{{"name", "user:b.txt"}, {"text", "two"}}}};
  on.perform(asks("a", scripted({{"a", {both, {.text = "done"}}}}), {saves()}));
  BOOST_TEST((named(on, on.key) == deltas{{{"a.txt", 0}, {"user:b.txt", 0}}}));
  BOOST_TEST(text_in(on, on.key, "a.txt") == "one");
  // The user's artifacts are in all sessions, those of a session are not.
  const auto other = on.open("other");
  BOOST_TEST(text_in(on, other, "user:b.txt") == "two");
  BOOST_TEST(text_in(on, other, "a.txt") == "none");
}

BOOST_AUTO_TEST_CASE(of_concurrent_tools_the_highest_version_is_named) {
  agent_fixture on;
  scripted_reply many;
  for (int count = 0; count < 20; ++count)
    many.function_calls.push_back(
      {"", "saves", json{{"name", "a"}, {"text", "x"}}});
  on.perform(asks("a", scripted({{"a", {many, {.text = "done"}}}}), {saves()}));
  BOOST_TEST((named(on, on.key) == deltas{{{"a", 19}}}));
  BOOST_TEST(on.runtime.artifacts()->versions(on.key, "a").value().size()
             == 20U);
}

BOOST_AUTO_TEST_CASE(a_tool_that_fails_after_saving_is_named_by_no_event) {
  agent_fixture on;
  const auto bad
    = tool_of("bad", [](const json&, tool_context& context) -> json {
        context.artifacts().save("a", part("x")).value();
        throw std::runtime_error("broken");
      });
  on.perform(
    asks("a", scripted({{"a", {calling("bad"), {.text = "x"}}}}), {bad}));
  BOOST_TEST(named(on, on.key).empty());
  BOOST_TEST(text_in(on, on.key, "a") == "x");
}

BOOST_AUTO_TEST_CASE(an_event_of_its_own_names_what_an_agent_saved_last) {
  agent_fixture on;
  const auto root = custom("a", [](invocation_context& context) -> agent_run {
    const auto version
      = (co_await context.artifacts().save("a", part("x"))).value();
    co_await context.emit(text("saved {}", version));
    (co_await context.artifacts().save("a", part("y"))).value();
  });
  BOOST_TEST(on.perform(root) == "a=saved 0 a= | ok");
  BOOST_TEST((named(on, on.key) == deltas{{{"a", 0}}, {{"a", 1}}}));
}

BOOST_AUTO_TEST_CASE(a_callback_that_only_saves_leaves_an_event) {
  agent_fixture on;
  const auto root
    = custom({.name = "a",
              .run = [](invocation_context& context) -> agent_run {
                co_await context.emit(text("x"));
              },
              .before_agent
              = {[](callback_context& context) -> task<std::optional<content>> {
                  (co_await context.artifacts().save("a", part("x"))).value();
                  co_return std::nullopt;
                }}});
  BOOST_TEST(on.perform(root) == "a= a=x | ok");
  BOOST_TEST((named(on, on.key) == deltas{{{"a", 0}}}));
}

BOOST_AUTO_TEST_CASE(everything_that_a_store_does_can_be_awaited) {
  agent_fixture on;
  const auto root = custom("a", [](invocation_context& context) -> agent_run {
    auto files = context.artifacts();
    (co_await files.save("a", part("one"))).value();
    (co_await files.save("a", part("two"))).value();
    const auto old = (co_await files.load("a", 0)).value();
    const auto names = (co_await files.list()).value();
    const auto versions = (co_await files.versions("a")).value();
    const auto missing = (co_await files.load("b")).value();
    const auto removed = (co_await files.remove("a")).value();
    co_await context.emit(text("{} {} {} {} {}",
                               *old->text(),
                               names.size(),
                               versions.size(),
                               missing.has_value(),
                               removed));
  });
  BOOST_TEST(on.perform(root) == "a=one 1 2 false true | ok");
}

BOOST_AUTO_TEST_CASE(a_save_by_then_is_not_named_by_the_event) {
  agent_fixture on;
  const tool saves_late(
    {.name = "saves_late",
     .run = [](const json&, tool_context& context) -> json {
       answers<std::int64_t> answered;
       context.artifacts().save("late", part("x")).then(answered.next());
       answered.await().front().value();
       context.artifacts().save("asked", part("x")).value();
       return 1;
     }});
  BOOST_TEST(on.perform(asks(
               "a",
               scripted({{"a", {calling("saves_late"), {.text = "done"}}}}),
               {saves_late}))
             == "a= a= a=done | ok");
  BOOST_TEST((named(on, on.key) == deltas{{{"asked", 0}}}));
  BOOST_TEST(on.runtime.artifacts()->list(on.key).value().size() == 2U);
}

BOOST_AUTO_TEST_CASE(a_call_that_starts_after_the_runtime_is_cancelled) {
  auto on = std::make_unique<agent_fixture>();
  std::optional<pending<std::optional<part>>> kept;
  const tool keeps({.name = "keeps",
                    .run = [&kept](const json&, tool_context& context) -> json {
                      kept.emplace(context.artifacts().load("a"));
                      return 1;
                    }});
  const auto model = scripted({{"a", {calling("keeps"), {.text = "done"}}}});
  BOOST_TEST(on->perform(asks("a", model, {keeps})) == "a= a= a=done | ok");
  on.reset();
  answers<std::optional<part>> answered;
  kept->then(answered.next());
  BOOST_TEST(code_of(answered.await().front()) == "cancelled");
}

BOOST_AUTO_TEST_CASE(a_plain_callback_must_not_block) {
  agent_fixture on;
  const auto root
    = custom({.name = "a",
              .run = [](invocation_context&) -> agent_run { co_return; },
              .before_agent = {[](callback_context& context) {
                context.artifacts().save("a", part("x")).value();
              }}});
  BOOST_TEST(on.perform(root) == "| would_deadlock");
}

BOOST_AUTO_TEST_CASE(a_bad_name_is_an_error_result) {
  agent_fixture on;
  on.perform(
    asks("a",
         scripted({{"a",
                    {calling("saves", {{"name", "../a"}, {"text", "x"}}),
                     {.text = "done"}}}}),
         {saves()}));
  const auto told = responses(on, on.key)[0].value("error", "");
  BOOST_TEST(told.find("/") != std::string::npos, told);
  BOOST_TEST(on.runtime.artifacts()->list(on.key).value().empty());
}

BOOST_AUTO_TEST_CASE(
  agents_that_are_tools_save_for_the_session_of_their_caller) {
  agent_fixture on;
  const auto inner
    = custom("inner", [](invocation_context& context) -> agent_run {
        (co_await context.artifacts().save("a", part("x"))).value();
        co_await context.emit(text("saved"));
      });
  on.perform(asks(
    "a",
    scripted({{"a", {calling("inner", {{"request", "x"}}), {.text = "done"}}}}),
    {agent_tool(inner)}));
  BOOST_TEST((named(on, on.key) == deltas{{{"a", 0}}}));
  BOOST_TEST(text_in(on, on.key, "a") == "x");
}

// -- instructions ----

BOOST_AUTO_TEST_CASE(an_instruction_takes_in_the_newest_text_of_an_artifact) {
  agent_fixture on;
  auto& files = *on.runtime.artifacts();
  files.save(on.key, "my notes-1.txt", part("old")).value();
  files.save(on.key, "my notes-1.txt", part("new {topic}")).value();
  files.save(on.key, "user:who", inline_data("Ann", "text/plain")).value();
  BOOST_TEST(on.perform(echoes("{artifact.my notes-1.txt} for "
                               "{ artifact.user:who }, {artifact.none?}."))
             == "a=new {topic} for Ann, . | ok");
  BOOST_TEST(
    on.perform(echoes({"{{artifact.my notes-1.txt}} for {artifact.user:who}}",
                       template_braces::any}))
    == "a=new {topic} for Ann | ok");
}

BOOST_AUTO_TEST_CASE(an_artifact_that_is_missing_or_no_text_fails_the_agent) {
  agent_fixture on;
  on.runtime.artifacts()
    ->save(on.key, "photo", inline_data("\x89PNG", "image/png"))
    .value();
  BOOST_TEST(on.perform(echoes("{artifact.none}")) == "| template_error");
  BOOST_TEST(agent_fixture::last_reason().find("artifact 'none'")
               != std::string::npos,
             agent_fixture::last_reason());
  BOOST_TEST(on.perform(echoes("{artifact.photo?}")) == "| template_error");
  BOOST_TEST(agent_fixture::last_reason().find("image/png")
               != std::string::npos,
             agent_fixture::last_reason());
  BOOST_TEST(on.perform(echoes("{artifact.a/b?}")) == "| template_error");
}

BOOST_AUTO_TEST_CASE(a_provider_takes_in_artifacts_by_awaiting) {
  agent_fixture on;
  on.runtime.artifacts()->save(on.key, "a", part("x")).value();
  const auto root = llm(
    {.name = "a",
     .model = echo(),
     .instruction = [](const readonly_context& context) -> task<std::string> {
       auto made = co_await inject_session_state("<{artifact.a}>", context);
       co_return std::move(made).value();
     }});
  BOOST_TEST(on.perform(root) == "a=<x> | ok");
  const auto plain
    = llm({.name = "a",
           .model = echo(),
           .instruction = [](const readonly_context& context) {
             return inject_session_state("<{artifact.a}>", context).value();
           }});
  BOOST_TEST(on.perform(plain) == "| would_deadlock");
}

// -- places ----

BOOST_AUTO_TEST_CASE(over_a_store_artifacts_have_to_be_given_a_place) {
  const staged_place place;
  agent_fixture on(place.options());
  BOOST_TEST(on.runtime.artifacts() == nullptr);
  BOOST_TEST(on.perform(echoes("{artifact.a?}")) == "| template_error");
  BOOST_TEST(agent_fixture::last_reason().find("runtime_options::artifacts")
               != std::string::npos,
             agent_fixture::last_reason());
}

BOOST_AUTO_TEST_CASE(what_is_no_place_is_refused) {
  runtime_options options;
  options.artifacts = "s3:bucket";
  BOOST_TEST(code_of(runtime::open(std::move(options))) == "invalid_argument");
}

BOOST_AUTO_TEST_CASE(a_removed_session_takes_its_artifacts_with_it) {
  agent_fixture on;
  auto& files = *on.runtime.artifacts();
  files.save(on.key, "a", part("x")).value();
  files.save(on.key, "user:b", part("y")).value();
  BOOST_TEST(on.sessions().remove(on.key).value());
  const auto again = on.open();
  BOOST_TEST((files.list(again).value() == std::vector<std::string>{"user:b"}));
  BOOST_TEST(on.sessions().remove_user("press", "ann").value());
  BOOST_TEST(files.list(again).value().empty());
}

BOOST_AUTO_TEST_SUITE_END()
