// `troupe load`: a load test of concurrent appends.

#pragma once

#include "troupe/cli/interrupts.hpp"

#include <memory>

namespace CLI {
class App;
class Option;
} // namespace CLI

namespace troupe::cli {

class load_command {
public:
  /// Adds the command to `program`, which outlives this.
  explicit load_command(CLI::App& program);
  ~load_command();

  /// Whether the command line asks for this command.
  bool is_chosen() const;

  /// Does what the parsed command line says, and gives the exit code.
  int execute(interrupts& signals) const;

private:
  struct arguments;

  CLI::App* command_;
  CLI::Option* mix_;
  CLI::Option* expected_;
  std::unique_ptr<arguments> arguments_;
};

} // namespace troupe::cli
