// The samples of docs/tools.md.

#include "troupe/agents/agent.hpp"
#include "troupe/agents/command_tool.hpp"

#include "page_fixture.hpp"

#include <variant>

BOOST_AUTO_TEST_SUITE(tools_page)

// The program need not be there: a call starts it.
BOOST_AUTO_TEST_CASE(an_agent_has_a_program_as_a_tool) {
  using namespace troupe;
  const auto model = testing::saying({{.text = "ok"}});

  json parameters{{"type", "object"},
                  {"properties", {{"city", {{"type", "string"}}}}},
                  {"required", {"city"}}};
  auto weather = command_tool({.name = "weather",
                               .description = "Tells the weather of a city.",
                               .parameters = parameters,
                               .command = {"./weather.py", "--json"}});
  auto guide = llm({.name = "guide", .model = model, .tools = {weather}});

  const auto& tools = std::get<llm_options>(guide.kind()).tools;
  BOOST_REQUIRE(tools.size() == 1U);
  BOOST_TEST(tools.front().parameters()["required"] == json({"city"}));
}

BOOST_AUTO_TEST_SUITE_END()
