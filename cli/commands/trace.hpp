// `troupe trace`: the timeline of a session's agents, from its log.

#pragma once

#include "troupe/cli/commands/program_command.hpp"

#include <memory>

namespace troupe::cli {

class trace_command : public program_command {
public:
  /// Adds the command to `program`, which outlives this.
  explicit trace_command(CLI::App& program);
  ~trace_command() override;

  int execute(interrupts& signals) const override;

private:
  struct arguments;

  std::unique_ptr<arguments> arguments_;
};

} // namespace troupe::cli
