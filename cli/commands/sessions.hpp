// `troupe sessions`: the session service on the command line.

#pragma once

#include "troupe/cli/commands/program_command.hpp"

#include <memory>

namespace troupe::cli {

class sessions_command : public program_command {
public:
  /// Adds the command to `program`, which outlives this.
  explicit sessions_command(CLI::App& program);
  ~sessions_command() override;

  int execute(interrupts& signals) const override;

private:
  struct subcommands;

  std::unique_ptr<subcommands> subcommands_;
};

} // namespace troupe::cli
