// One command of the program: its part of the command line, and its work.

#pragma once

#include "troupe/cli/terminal/interrupts.hpp"

#include <string>

namespace CLI {
class App;
} // namespace CLI

namespace troupe::cli {

class program_command {
public:
  virtual ~program_command() = default;
  program_command(const program_command&) = delete;
  program_command& operator=(const program_command&) = delete;

  /// Returns true if the command line chooses this command.
  bool is_chosen() const;

  /// Runs the parsed command line; returns the exit code.
  virtual int execute(interrupts& signals) const = 0;

protected:
  /// Adds the command to `parent`, which outlives this.
  program_command(CLI::App& parent,
                  const std::string& name,
                  const std::string& description);

  /// Reads the command's part of the command line.
  CLI::App& parser() const noexcept { return *parser_; }

private:
  CLI::App* parser_;
};

} // namespace troupe::cli
