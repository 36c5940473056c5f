// `troupe mcp` of a program that was built without MCP.

#include "troupe/cli/commands/mcp.hpp"
#include "troupe/cli/terminal/exit_code.hpp"

#include <CLI/CLI.hpp>

#include <utility>

namespace troupe::cli {

struct mcp_command::arguments {};

mcp_command::mcp_command(CLI::App& program, agent_file_options agents)
  : program_command(
    program, "mcp", "Offer an agent as an MCP tool over stdin and stdout"),
    agents_(std::move(agents)) {
  parser().allow_extras();
}

mcp_command::~mcp_command() = default;

int mcp_command::execute(interrupts&) const {
  return report(error(errc::invalid_argument,
                      "this program was built without MCP; configure with "
                      "-DTROUPE_MCP=ON"));
}

} // namespace troupe::cli
