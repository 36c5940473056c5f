// `troupe load`: a load test of concurrent appends, and sweeps of them.

#pragma once

#include "troupe/cli/interrupts.hpp"
#include "troupe/load/workload.hpp"

#include <memory>
#include <variant>

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

  void add_sweep();
  // The settings, or the exit code of what is wrong with them.
  std::variant<load::settings, int> read_settings() const;
  int execute_test(const load::settings& chosen, interrupts& signals) const;
  int execute_sweep(const load::settings& base, interrupts& signals) const;

  CLI::App* command_;
  CLI::App* sweep_ = nullptr;
  CLI::Option* duration_;
  CLI::Option* varied_ = nullptr;
  CLI::Option* mix_;
  CLI::Option* expected_;
  std::unique_ptr<arguments> arguments_;
};

} // namespace troupe::cli
