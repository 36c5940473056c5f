// The sample of docs/mcp.md.

#include "troupe/agents/agent.hpp"
#include "troupe/mcp/mcp_tools.hpp"

#include "page_fixture.hpp"

#include <variant>

BOOST_AUTO_TEST_SUITE(mcp_page)

// The program need not be there: the set starts it in the background.
BOOST_AUTO_TEST_CASE(an_agent_has_the_tools_of_a_server) {
  using namespace troupe;
  const auto model = testing::saying({{.text = "ok"}});

  auto files
    = mcp_tools({.command = "mcp-server-filesystem", .args = {"/srv/texts"}});
  auto reader = llm({.name = "reader", .model = model, .toolsets = {files}});

  BOOST_TEST(std::get<llm_options>(reader.kind()).toolsets.size() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()
