// The samples of docs/tools.md.

#include "troupe/agents/agent.hpp"
#include "troupe/agents/command_tool.hpp"
#include "troupe/agents/openapi_tools.hpp"

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

// The host need not be there: a call sends the request.
BOOST_AUTO_TEST_CASE(an_agent_has_the_operations_of_an_api) {
  using namespace troupe;
  const auto model = testing::saying({{.text = "ok"}});
  const std::string key = "k";
  const std::string text = R"(
openapi: 3.0.3
servers: [{url: https://pets.example}]
security: [{api_key: []}]
paths: {/pets: {get: {operationId: listPets}}}
components:
  securitySchemes: {api_key: {type: apiKey, in: header, name: X-Key}}
)";

  auto pets = openapi_tools({.document = read_openapi(text).value(),
                             .tool_filter = {"list_pets"},
                             .credentials = {{"api_key", key}}});
  auto keeper = llm({.name = "keeper", .model = model, .tools = pets});

  const auto& tools = std::get<llm_options>(keeper.kind()).tools;
  BOOST_REQUIRE(tools.size() == 1U);
  BOOST_TEST(tools.front().name() == "list_pets");
}

BOOST_AUTO_TEST_SUITE_END()
