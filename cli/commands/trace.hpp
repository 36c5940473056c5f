// `troupe trace`: the timeline of a session's agents, from its log.

#pragma once

#include <memory>

namespace CLI {
class App;
} // namespace CLI

namespace troupe::cli {

class trace_command {
public:
  /// Adds the command to `program`, which outlives this.
  explicit trace_command(CLI::App& program);
  ~trace_command();

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
