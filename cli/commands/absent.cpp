// `troupe serve` of a program that was built without the server.

#include "troupe/cli/commands/serve.hpp"
#include "troupe/cli/terminal/exit_code.hpp"

#include <CLI/CLI.hpp>

#include <utility>

namespace troupe::cli {

struct serve_command::arguments {};

serve_command::serve_command(CLI::App& program, agent_file_options agents)
  : program_command(program, "serve", "Serve the agents of a folder over HTTP"),
    agents_(std::move(agents)) {
  parser().allow_extras();
}

serve_command::~serve_command() = default;

int serve_command::execute(interrupts&) const {
  return report(error(errc::invalid_argument,
                      "this program was built without the server; configure "
                      "with -DTROUPE_SERVER=ON"));
}

} // namespace troupe::cli
