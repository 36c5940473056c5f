// `troupe load compare`: two sets of load tests held against each other.

#pragma once

#include <memory>

namespace CLI {
class App;
} // namespace CLI

namespace troupe::cli {

class compare_command {
public:
  /// Adds the command below `load`, which outlives this.
  explicit compare_command(CLI::App& load);
  ~compare_command();

  /// Whether the command line asks for this command.
  bool is_chosen() const;

  /// Does what the parsed command line says, and gives the exit code.
  int execute() const;

private:
  struct arguments;

  CLI::App* command_;
  std::unique_ptr<arguments> arguments_;
};

} // namespace troupe::cli
