// `troupe init`: makes a folder with an agent, to start from.

#pragma once

#include <memory>
#include <string>

namespace CLI {
class App;
} // namespace CLI

namespace troupe::cli {

class init_command {
public:
  /// Adds the command to `program`, which outlives this. `program_name` is the
  /// word that calls the program.
  init_command(CLI::App& program, std::string program_name);
  ~init_command();

  /// Whether the command line chooses this command.
  bool is_chosen() const;

  /// Runs the parsed command line; returns the exit code.
  int execute() const;

private:
  struct arguments;

  CLI::App* command_;
  std::string program_name_;
  std::unique_ptr<arguments> arguments_;
};

} // namespace troupe::cli
