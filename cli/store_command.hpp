// `troupe store`: what is done to a store as a whole.

#pragma once

#include "troupe/cli/interrupts.hpp"
#include "troupe/cli/store_option.hpp"

namespace troupe::cli {

class store_command {
public:
  /// Adds the command to `program`, which outlives this.
  explicit store_command(CLI::App& program);

  /// Whether the command line asks for this command.
  bool is_chosen() const;

  /// Does what the parsed command line says, and gives the exit code. A signal
  /// ends the program at once: nothing is written to the store.
  int execute(const interrupts& signals) const;

private:
  CLI::App* command_;
  store_option store_;
};

} // namespace troupe::cli
