// The samples of docs/mcp.md.

#include "troupe/agents/agent.hpp"
#include "troupe/mcp/mcp_server.hpp"
#include "troupe/mcp/mcp_tools.hpp"

#include "page_fixture.hpp"
#include <fcntl.h>
#include <unistd.h>

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

// The input is empty, so the server ends at once.
BOOST_FIXTURE_TEST_CASE(an_agent_is_a_tool, troupe::testing::page_fixture) {
  using namespace troupe;
  const auto reader
    = llm({.name = "reader", .model = testing::saying({{.text = "ok"}})});
  const int requests = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int answers = ::open("/dev/null", O_WRONLY | O_CLOEXEC);

  auto served = serve_agent(
    runtime, reader, {.user = "ann", .input = requests, .output = answers});

  BOOST_TEST(served.has_value());
  ::close(requests);
  ::close(answers);
}

BOOST_AUTO_TEST_SUITE_END()
