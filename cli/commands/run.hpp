// `troupe run`: runs an agent file on a session.

#pragma once

#include "troupe/cli/terminal/interrupts.hpp"
#include "troupe/core/key.hpp"

#include <memory>
#include <string>

namespace CLI {
class App;
class Option;
} // namespace CLI

namespace troupe::cli {

class run_command {
public:
  /// Adds the command to `program`, which outlives this.
  explicit run_command(CLI::App& program);
  ~run_command();

  /// Whether the command line chooses this command.
  bool is_chosen() const;

  /// Runs the parsed command line; returns the exit code.
  int execute(interrupts& signals) const;

private:
  struct arguments;

  static std::string go_on_line(const arguments& chosen,
                                const session_key& session);
  static std::string go_on_note(const arguments& chosen);

  CLI::App* command_;
  CLI::Option* answers_;
  CLI::Option* inputs_;
  std::unique_ptr<arguments> arguments_;
};

} // namespace troupe::cli
