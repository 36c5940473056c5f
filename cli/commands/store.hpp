// `troupe store`: commands on a whole store.

#pragma once

#include "troupe/cli/options/store_option.hpp"
#include "troupe/cli/terminal/interrupts.hpp"

namespace troupe::cli {

class store_command {
public:
  /// Adds the command to `program`, which outlives this.
  explicit store_command(CLI::App& program);

  /// Whether the command line chooses this command.
  bool is_chosen() const;

  /// Runs the parsed command line; returns the exit code. A signal ends the
  /// program at once, since nothing is written to the store.
  int execute(const interrupts& signals) const;

private:
  CLI::App* command_;
  store_option store_;
};

} // namespace troupe::cli
