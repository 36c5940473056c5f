// `troupe run`: runs an agent file on a session.

#pragma once

#include "troupe/agents/agent_file.hpp"
#include "troupe/cli/commands/program_command.hpp"
#include "troupe/core/key.hpp"

#include <memory>
#include <string>

namespace CLI {
class Option;
} // namespace CLI

namespace troupe::cli {

class run_command : public program_command {
public:
  /// Adds the command to `program`, which outlives this. `agents` has the tools
  /// and callbacks of agent files; `program_name` is the word that calls the
  /// program.
  run_command(CLI::App& program,
              agent_file_options agents,
              std::string program_name);
  ~run_command() override;

  int execute(interrupts& signals) const override;

private:
  struct arguments;

  std::string go_on_line(const arguments& chosen,
                         const session_key& session) const;
  static std::string go_on_note(const arguments& chosen);

  CLI::Option* answers_;
  CLI::Option* inputs_;
  agent_file_options agents_;
  std::string program_name_;
  std::unique_ptr<arguments> arguments_;
};

} // namespace troupe::cli
