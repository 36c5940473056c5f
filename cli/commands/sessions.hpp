// `troupe sessions`: the session service on the command line.

#pragma once

#include "troupe/cli/terminal/interrupts.hpp"

#include <memory>

namespace CLI {
class App;
} // namespace CLI

namespace troupe::cli {

class sessions_command {
public:
  /// Adds the command to `program`, which outlives this.
  explicit sessions_command(CLI::App& program);
  ~sessions_command();

  /// Whether the command line chooses this command.
  bool is_chosen() const;

  /// Runs the parsed command line; returns the exit code.
  int execute(interrupts& signals) const;

private:
  struct subcommands;

  CLI::App* command_;
  std::unique_ptr<subcommands> subcommands_;
};

} // namespace troupe::cli
