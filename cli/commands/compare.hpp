// `troupe load compare`: compares two sets of load tests.

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

  /// Whether the command line chooses this command.
  bool is_chosen() const;

  /// Runs the parsed command line; returns the exit code.
  int execute() const;

private:
  struct arguments;

  CLI::App* command_;
  std::unique_ptr<arguments> arguments_;
};

} // namespace troupe::cli
