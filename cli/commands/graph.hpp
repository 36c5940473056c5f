// `troupe graph`: a drawing of the agents in a file, with the states that the
// nodes of workflows have in a session.

#pragma once

#include "troupe/agents/agent_file.hpp"
#include "troupe/agents/workflow_progress.hpp"
#include "troupe/cli/commands/program_command.hpp"

#include <memory>
#include <vector>

namespace troupe::cli {

class graph_command : public program_command {
public:
  /// Adds the command to `program`, which outlives this. `agents` has the tools
  /// and callbacks that the file may name.
  graph_command(CLI::App& program, agent_file_options agents);
  ~graph_command() override;

  int execute(interrupts& signals) const override;

private:
  struct arguments;

  result<std::vector<workflow_view>> read_workflows(const agent& root) const;

  agent_file_options agents_;
  std::unique_ptr<arguments> arguments_;
};

} // namespace troupe::cli
