#include "troupe/cli/commands/program_command.hpp"

#include <CLI/CLI.hpp>

namespace troupe::cli {

program_command::program_command(CLI::App& parent,
                                 const std::string& name,
                                 const std::string& description)
  : parser_(parent.add_subcommand(name, description)) {}

bool program_command::is_chosen() const {
  return parser_->parsed();
}

} // namespace troupe::cli
