// Agent files that are read to be shown: nothing is started, and no key,
// variable or permission is needed.

#include "troupe/agents/drawing.hpp"
#include "troupe/models/scripted_model.hpp"

#include "agent_folder.hpp"
#include "tool_caller.hpp"
#include <boost/test/unit_test.hpp>

#include <string>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(shown_files)

namespace {

struct shown_folder : folder {
  shown_folder() { options.only_shown = true; }

  std::string text(const std::string& file) const {
    const auto loaded = load(file);
    BOOST_REQUIRE_MESSAGE(loaded, reason_of(loaded));
    return to_text(*loaded);
  }
};

const std::string with_everything = R"(name: desk
model: {name: claude-sonnet-4-5, key_env: SOME_KEY}
tools:
  - name: McpToolset
    args:
      stdio_server_params:
        command: ./bin/server
        args: [--all]
        env: {TOKEN: "${SOME_TOKEN}"}
        pass_env: [OTHER_TOKEN]
      tool_filter: [read, "not a name"]
      tool_name_prefix: files
  - name: McpToolset
    args:
      streamable_http_connection_params:
        url: https://user:secret@tools.example.com/mcp?key=1
        headers: {X-Api-Key: "${SOME_TOKEN}"}
        bearer_env: SOME_TOKEN
  - name: weather
    command: [./weather.py]
    env: {LEVEL: "${LEVEL}"}
  - google_search
  - count
)";

} // namespace

BOOST_AUTO_TEST_CASE(programs_servers_and_keys_are_not_needed) {
  const shown_folder of;
  const auto server = (fs::weakly_canonical(of.path) / "bin/server").string();
  BOOST_TEST(of.text(with_everything)
             == "desk (LLM, model claude-sonnet-4-5)\n"
                "├─ tool: weather (at most 16 calls at once)\n"
                "├─ tool: count\n"
                "├─ toolset: "
                  + server
                  + " (files_read)\n"
                    "├─ toolset: https://***@tools.example.com/mcp (known "
                    "when it runs)\n"
                    "└─ vendor's tool: google_search\n");
}

BOOST_AUTO_TEST_CASE(scripts_may_be_missing_and_so_may_a_model) {
  const shown_folder of;
  BOOST_TEST(of.text("name: a\nmodel: scripted:none.json\n")
             == "a (LLM, model scripted:none.json)\n");
  BOOST_TEST(of.text("name: a\n") == "a (LLM)\n");
  BOOST_TEST(of.text("name: a\nmodel: [gemini-2.5-pro, openai:gpt-5]\n")
             == "a (LLM, model gemini-2.5-pro or openai:gpt-5)\n");
}

BOOST_AUTO_TEST_CASE(other_mistakes_are_still_found) {
  const shown_folder of;
  BOOST_TEST(of.failure("name: a\nmodle: x\n")
               .starts_with("root_agent.yaml:2: unknown field 'modle'"));
  BOOST_TEST(of.failure("name: a\ntools: [none]\n")
               .starts_with("root_agent.yaml:2: unknown tool 'none'"));
  BOOST_TEST(
    of.failure("name: a\nmodel: {name: m, api_key: k}\n")
      .starts_with(
        "root_agent.yaml:2: 'api_key': keys are not allowed in files"));
}

BOOST_AUTO_TEST_CASE(models_of_agents_that_are_shown_fail) {
  const shown_folder of;
  const auto shown = of.load("name: a\nmodel: scripted:replies.json\n").value();
  auto on = runtime::open().value();
  on.sessions().create({"a", "u", "s"}).value();
  const auto ended
    = on.run(shown, {"a", "u", "s"}, user_text("go")).wait().get();
  BOOST_TEST(code_of(ended) == "invalid_argument");
  BOOST_TEST(reason_of(ended).find("was read to be shown")
             != std::string::npos);
}

BOOST_AUTO_TEST_CASE(tools_of_agents_that_are_shown_fail) {
  const shown_folder of;
  of.write("weather.sh", "#!/bin/sh\ntouch \"$0.started\"\necho '{}'\n");
  fs::permissions(of.path / "weather.sh", fs::perms::owner_all);
  const auto shown
    = of.load("name: a\ntools:\n  - {name: weather, command: ./weather.sh}\n")
        .value();
  const auto& tools = std::get<llm_options>(shown.kind()).tools;
  function_call wanted;
  wanted.name = "weather";
  const auto told = tool_caller(tools).call_all({wanted});
  BOOST_TEST_REQUIRE(told.size() == 1U);
  BOOST_TEST(to_text(told[0]).find("was read to be shown")
             != std::string::npos);
  BOOST_TEST(!fs::exists(of.path / "weather.sh.started"));
}

BOOST_AUTO_TEST_SUITE_END()
