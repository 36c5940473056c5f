// `troupe mcp`: offers an agent as a tool over stdin and stdout.

#pragma once

#include "troupe/agents/agent_file.hpp"
#include "troupe/cli/commands/program_command.hpp"

#include <memory>

namespace troupe::cli {

class mcp_command final : public program_command {
public:
  /// `agents` holds the tools and callbacks that agent files may name. In a
  /// program without MCP, the command says how to build one with it.
  mcp_command(CLI::App& program, agent_file_options agents);
  ~mcp_command() override;

  /// Serves until stdin ends, or a signal.
  int execute(interrupts& signals) const override;

private:
  struct arguments;

  void add_options();

  agent_file_options agents_;
  std::unique_ptr<arguments> arguments_;
};

} // namespace troupe::cli
