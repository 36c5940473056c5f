// `troupe load`: load tests of concurrent appends, sweeps over settings, and
// comparisons.

#pragma once

#include "troupe/cli/commands/compare.hpp"
#include "troupe/cli/commands/program_command.hpp"
#include "troupe/load/load_test.hpp"

#include <memory>
#include <string>
#include <variant>

namespace CLI {
class Option;
} // namespace CLI

namespace troupe::cli {

class load_command : public program_command {
public:
  /// Adds the command to `program`, which outlives this.
  explicit load_command(CLI::App& program);
  ~load_command() override;

  int execute(interrupts& signals) const override;

private:
  struct arguments;
  struct ending;
  struct report_files;

  void add_sweep();
  // The settings, or the exit code if they are wrong.
  std::variant<load::settings, int> read_settings() const;
  result<void> open(report_files& files) const;
  int execute_tests(const load::settings& chosen, interrupts& signals) const;
  int execute_sweep(const load::settings& base, interrupts& signals) const;
  static result<load::outcome> run(const load::settings& chosen,
                                   std::string before,
                                   const interrupts& signals);
  void clear(const load::outcome& made, ending& end) const;
  static result<void>
  finish_page(report_files& files, const std::string& text, const json& data);

  CLI::App* sweep_ = nullptr;
  CLI::Option* duration_;
  CLI::Option* varied_ = nullptr;
  CLI::Option* mix_;
  CLI::Option* expected_;
  std::unique_ptr<compare_command> compare_;
  std::unique_ptr<arguments> arguments_;
};

} // namespace troupe::cli
