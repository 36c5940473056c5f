#include "troupe/cli/options/agent_access.hpp"

#include "troupe/cli/options/toolset_pool.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <memory>

namespace troupe::cli {

void agent_access::add_to(CLI::App& command) {
  command
    .add_option("--allow-env",
                variables,
                "Environment variable that agent files may name, in addition "
                "to the vendors' own; may be repeated")
    ->type_name("NAME")
    ->allow_extra_args(false)
    ->check([](const std::string& text) {
      return text.empty() || text.find('=') != std::string::npos
               ? fmt::format("'{}' is not the name of an environment variable",
                             text)
               : std::string();
    });
  command
    .add_option("--allow-command",
                commands,
                "Program that agent files may start, such as an MCP server: a "
                "name, or the path of one with a path; may be repeated")
    ->type_name("NAME")
    ->allow_extra_args(false)
    ->check([](const std::string& text) {
      return text.empty()
               ? "expected the name of a program, as the agent file writes it"
               : std::string();
    });
}

void agent_access::grant(agent_file_options& options) const {
  options.allowed_variables = variables;
  options.allowed_commands = commands;
  options.open_toolset
    = [pool = std::make_shared<toolset_pool>()](const mcp_source& source) {
        return pool->open(source);
      };
}

} // namespace troupe::cli
