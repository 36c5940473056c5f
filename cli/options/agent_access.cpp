#include "troupe/cli/options/agent_access.hpp"

#include "troupe/cli/options/toolset_pool.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>

namespace troupe::cli {

namespace {

// ADK takes `1` and `true` for a flag that is set.
bool is_disabled_by_adk() {
  // Safe as long as no thread changes the environment.
  // NOLINTNEXTLINE(concurrency-mt-unsafe)
  const char* held = std::getenv("ADK_DISABLE_LOAD_DOTENV");
  const std::string_view text = held != nullptr ? held : "";
  return text == "1" || text == "true" || text == "TRUE" || text == "True";
}

} // namespace

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
    .add_option(
      "--allow-command",
      commands,
      "Program that agent files may start as a tool or an MCP server: "
      "a name, or the path of one with a path; may be repeated")
    ->type_name("NAME")
    ->allow_extra_args(false)
    ->check([](const std::string& text) {
      return text.empty()
               ? "expected the name of a program, as the agent file writes it"
               : std::string();
    });
  command.add_flag("--no-dotenv",
                   skips_dotenv,
                   "Do not read the file .env of the agent's folder, or of the "
                   "nearest folder above it");
}

result<void> agent_access::read_dotenv(const std::filesystem::path& agent_file,
                                       agent_file_options& options) const {
  if (skips_dotenv || is_disabled_by_adk())
    return {};
  auto found = find_dotenv(agent_file, variables);
  if (!found)
    return found.error();
  options.dotenv = std::move(*found);
  return {};
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
