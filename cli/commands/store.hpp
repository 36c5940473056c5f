// `troupe store`: commands on a whole store.

#pragma once

#include "troupe/cli/commands/program_command.hpp"
#include "troupe/cli/options/store_option.hpp"

namespace troupe::cli {

class store_command : public program_command {
public:
  /// Adds the command to `program`, which outlives this.
  explicit store_command(CLI::App& program);

  /// Runs the parsed command line; returns the exit code. A signal ends the
  /// program at once, since nothing is written to the store.
  int execute(interrupts& signals) const override;

private:
  store_option store_;
};

} // namespace troupe::cli
