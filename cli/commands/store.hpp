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
  /// program at once: a check writes nothing, and a vacuum leaves a whole
  /// store.
  int execute(interrupts& signals) const override;

private:
  int check(const interrupts& signals) const;
  int vacuum(const interrupts& signals) const;

  store_option store_;
  const CLI::App* vacuum_ = nullptr;
};

} // namespace troupe::cli
