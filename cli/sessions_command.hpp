// `troupe sessions`: the session service on a store.

#pragma once

#include "troupe/cli/interrupts.hpp"

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

  /// Whether the command line asks for this command.
  bool is_chosen() const;

  /// Does what the parsed command line says, and gives the exit code.
  int execute(interrupts& signals) const;

private:
  struct subcommands;

  CLI::App* command_;
  std::unique_ptr<subcommands> subcommands_;
};

} // namespace troupe::cli
