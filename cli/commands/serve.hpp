// `troupe serve`: serves the agents of a folder over HTTP.

#pragma once

#include "troupe/agents/agent_file.hpp"
#include "troupe/cli/commands/program_command.hpp"

#include <memory>

namespace troupe::cli {

class serve_command : public program_command {
public:
  /// Adds the command to `program`, which outlives this. `agents` has the tools
  /// and callbacks of agent files.
  serve_command(CLI::App& program, agent_file_options agents);
  ~serve_command() override;

  int execute(interrupts& signals) const override;

private:
  struct arguments;

  void add_options();
  void add_access_options();

  agent_file_options agents_;
  std::unique_ptr<arguments> arguments_;
};

} // namespace troupe::cli
