// `troupe state`: the state of one app, user or session.

#pragma once

#include "troupe/cli/commands/program_command.hpp"

#include <memory>

namespace troupe::cli {

class state_command : public program_command {
public:
  /// Adds the command to `program`, which outlives this.
  explicit state_command(CLI::App& program);
  ~state_command() override;

  int execute(interrupts& signals) const override;

private:
  struct subcommands;

  std::unique_ptr<subcommands> subcommands_;
};

} // namespace troupe::cli
