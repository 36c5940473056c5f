// `troupe init`: makes a folder with an agent, to start from.

#pragma once

#include "troupe/cli/commands/program_command.hpp"

#include <memory>
#include <string>

namespace troupe::cli {

class init_command : public program_command {
public:
  /// Adds the command to `program`, which outlives this. `program_name` is the
  /// word that calls the program.
  init_command(CLI::App& program, std::string program_name);
  ~init_command() override;

  int execute(interrupts& signals) const override;

private:
  struct arguments;

  std::string program_name_;
  std::unique_ptr<arguments> arguments_;
};

} // namespace troupe::cli
