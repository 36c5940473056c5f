// The requests of an LLM agent to its model, and the use of the answers.

#include "troupe/agents/turns/fence.hpp"

#include "agent_fixture.hpp"
#include <boost/test/unit_test.hpp>

#include <latch>
#include <memory>
#include <stop_token>
#include <string>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(llm_agents)

namespace {

const json_schema point(json::parse(R"({
  "type": "object",
  "properties": {"x": {"type": "integer"}},
  "required": ["x"]
})"));

model_ptr answering(const std::string& said) {
  return scripted({{"*", {{.text = said}}}});
}

/// A model that keeps the requests and answers "ok".
struct listening {
  std::shared_ptr<std::vector<model_request>> heard
    = std::make_shared<std::vector<model_request>>();

  model_ptr model() const {
    return std::make_shared<made_model>(
      [kept = heard](model_request request, const model_reply& reply) {
        kept->push_back(std::move(request));
        reply(model_response(content("model", {part("ok")})));
      });
  }

  const model_request& last() const { return heard->back(); }

  std::vector<std::string> said() const {
    std::vector<std::string> texts;
    for (const auto& each : last().contents)
      texts.push_back(each->text());
    return texts;
  }
};

} // namespace

// -- instructions ----

BOOST_AUTO_TEST_CASE(the_global_instruction_of_the_root_comes_first) {
  agent_fixture on;
  const listening ear;
  const auto below = llm({.name = "below",
                          .model = ear.model(),
                          .instruction = "own {k}",
                          .global_instruction = "not the root's"});
  const auto root = llm(
    {.name = "root",
     .model = scripted(
       {{"root", {calling("transfer_to_agent", {{"agent_name", "below"}})}}}),
     .global_instruction = "be kind, {k}"},
    {below});
  BOOST_TEST(on.append(on.key, {{"k", "Ann"}}) == "ok");
  on.perform(root);
  BOOST_TEST(
    ear.last().system_instruction.starts_with("be kind, Ann\n\nown Ann\n\n"),
    ear.last().system_instruction);
}

BOOST_AUTO_TEST_CASE(
  with_a_static_instruction_the_other_goes_into_the_conversation) {
  agent_fixture on;
  const listening ear;
  const auto a = llm({.name = "a",
                      .model = ear.model(),
                      .instruction = "own {k?}",
                      .static_instruction = "always {k}"});
  on.perform(a);
  BOOST_TEST(ear.last().system_instruction
             == "always {k}\n\nYou are an agent with the internal name \"a\".");
  const auto own = labelled_instruction("own ");
  BOOST_TEST(ear.said() == std::vector<std::string>({own, "go"}),
             boost::test_tools::per_element());
  on.perform(a);
  // It comes before the newest message of the user.
  BOOST_TEST(ear.said() == std::vector<std::string>({"go", "ok", own, "go"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(static_contents_come_before_the_whole_conversation) {
  agent_fixture on;
  const listening ear;
  const auto a
    = llm({.name = "a",
           .model = ear.model(),
           .instruction = "own",
           .static_instruction = "look at the file",
           .static_contents = {user_text("file 1"), user_text("file 2")}});
  on.perform(a);
  BOOST_TEST(ear.last().system_instruction
             == "look at the file\n\n"
                "You are an agent with the internal name \"a\".");
  const auto own = labelled_instruction("own");
  BOOST_TEST(ear.said()
               == std::vector<std::string>({"file 1", "file 2", own, "go"}),
             boost::test_tools::per_element());
  on.perform(a);
  BOOST_TEST(
    ear.said()
      == std::vector<std::string>({"file 1", "file 2", "go", "ok", own, "go"}),
    boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(generation_config_and_schema_reach_the_model) {
  agent_fixture on;
  const listening ear;
  const auto config = json::parse(R"({"temperature": 0.5})");
  on.perform(
    llm({.name = "a", .model = ear.model(), .generation_config = config}));
  BOOST_TEST(ear.last().generation_config.data() == config);
  BOOST_TEST(ear.last().response_schema.is_null());
  on.perform(llm({.name = "a", .model = ear.model(), .output_schema = point}));
  BOOST_TEST(ear.last().response_schema.data() == point.text());
}

namespace {

// A model whose vendor runs every tool.
class vendor_served_model : public made_model {
public:
  using made_model::made_model;

  result<void> check_vendor_tools(const std::vector<vendor_tool>& /*wanted*/,
                                  bool /*beside*/) const override {
    return {};
  }
};

} // namespace

BOOST_AUTO_TEST_CASE(tools_of_the_vendor_reach_the_model) {
  agent_fixture on;
  std::vector<vendor_tool> seen;
  llm_options options;
  options.name = "a";
  options.model = std::make_shared<vendor_served_model>(
    [&seen](const model_request& request, const model_reply& reply) {
      seen = request.vendor_tools;
      reply(model_response(text("ok")));
    });
  options.vendor_tools
    = {vendor_tool("url_context"), vendor_tool("web_search", json{{"n", 1}})};
  on.perform(llm(options));
  BOOST_TEST((seen == options.vendor_tools));
}

BOOST_AUTO_TEST_CASE(what_has_a_field_of_its_own_is_refused_as_generation) {
  for (const auto* taken : {"tools", "systemInstruction", "response_schema"}) {
    auto config = json::object();
    config[taken] = "x";
    BOOST_TEST(code_thrown_by([&] {
                 llm(
                   {.name = "a", .model = echo(), .generation_config = config});
               })
               == "invalid_argument");
  }
}

// -- answers ----

BOOST_AUTO_TEST_CASE(an_answer_that_fits_its_schema_is_stored_as_its_value) {
  agent_fixture on;
  BOOST_TEST(on.perform(llm({.name = "a",
                             .model = answering(R"({"x": 5})"),
                             .output_key = "user:point",
                             .output_schema = point}))
             == R"(a={"x": 5} | ok)");
  BOOST_TEST(on.state_now()["user:point"] == json({{"x", 5}}));
}

BOOST_AUTO_TEST_CASE(an_answer_that_does_not_fit_fails_and_is_not_stored) {
  agent_fixture on;
  for (const auto* said : {"five", R"({"x": "5"})", "[]"}) {
    BOOST_TEST(on.perform(llm({.name = "a",
                               .model = answering(said),
                               .output_key = "point",
                               .output_schema = point}))
               == "| model_failed");
    BOOST_TEST(agent_fixture::last_reason().find("output_schema")
               != std::string::npos);
  }
  BOOST_TEST(on.state_now() == json::object());
  for (const auto& said : on.events(on.key))
    BOOST_TEST(said->author == "user");
}

BOOST_AUTO_TEST_CASE(an_empty_answer_passes_its_schema_and_stores_nothing) {
  agent_fixture on;
  BOOST_TEST(on.perform(llm({.name = "a",
                             .model = answering(" \n"),
                             .output_key = "point",
                             .output_schema = point}))
             == "a= \n | ok");
  BOOST_TEST(!on.state_now().contains("point"));
}

BOOST_AUTO_TEST_CASE(a_cancelled_call_does_not_poison_the_session) {
  agent_fixture on;
  const auto started = std::make_shared<tally>();
  const auto waits
    = tool_of("waits", [started](const json&, tool_context& context) -> json {
        started->add();
        std::latch stopped(1);
        const std::stop_callback told(context.stop(),
                                      [&] { stopped.count_down(); });
        stopped.wait();
        return 1;
      });
  auto run = on.runtime.run(
    asks("a", scripted({{"a", {calling("waits")}}}), {waits}), on.key, "go");
  started->await(1);
  run.cancel();
  BOOST_TEST(agent_fixture::show(std::move(run)) == "a= | cancelled");
  const listening ear;
  BOOST_TEST(on.perform(asks("a", ear.model())) == "a=ok | ok");
  const auto& closing = ear.last().contents.at(2)->parts.at(0);
  BOOST_TEST_REQUIRE(closing.response() != nullptr);
  BOOST_TEST(closing.response()->name == "waits");
  BOOST_TEST(closing.response()->response.data().contains("error"));
}

BOOST_AUTO_TEST_CASE(a_turn_starts_behind_hand_overs) {
  agent_fixture on;
  const listening ear;
  const auto below = llm({.name = "below",
                          .model = ear.model(),
                          .include_contents = include_contents::none});
  const auto root = llm(
    {.name = "root",
     .model = scripted(
       {{"root", {calling("transfer_to_agent", {{"agent_name", "below"}})}}})},
    {below});
  on.perform(root);
  BOOST_TEST(ear.last().contents.front()->text() == "go");
}

BOOST_AUTO_TEST_SUITE_END()
