// `troupe experiment`: runs variants of an agent file repeatedly.

#pragma once

#include "troupe/agents/agent_file.hpp"
#include "troupe/cli/terminal/interrupts.hpp"

#include <memory>

namespace CLI {
class App;
class Option;
} // namespace CLI

namespace troupe::cli {

class experiment_command {
public:
  /// Adds the command to `program`, which outlives this. `agents` has the tools
  /// and callbacks of agent files.
  experiment_command(CLI::App& program, agent_file_options agents);
  ~experiment_command();

  /// Whether the command line chooses this command.
  bool is_chosen() const;

  /// Runs the parsed command line; returns the exit code.
  int execute(interrupts& signals) const;

private:
  struct arguments;

  CLI::App* command_;
  agent_file_options agents_;
  std::unique_ptr<arguments> arguments_;
};

} // namespace troupe::cli
