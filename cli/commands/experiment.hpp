// `troupe experiment`: runs variants of an agent file repeatedly.

#pragma once

#include "troupe/agents/agent_file.hpp"
#include "troupe/cli/commands/program_command.hpp"
#include "troupe/load/experiment.hpp"

#include <memory>

namespace troupe::cli {

class experiment_command : public program_command {
public:
  /// Adds the command to `program`, which outlives this. `agents` has the tools
  /// and callbacks of agent files.
  experiment_command(CLI::App& program, agent_file_options agents);
  ~experiment_command() override;

  int execute(interrupts& signals) const override;

private:
  struct arguments;

  /// Sets the session at which all runs begin, if there is one.
  result<void> choose_start(load::experiment& planned) const;

  agent_file_options agents_;
  std::unique_ptr<arguments> arguments_;
};

} // namespace troupe::cli
