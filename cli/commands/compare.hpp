// `troupe load compare`: compares two sets of load tests.

#pragma once

#include "troupe/cli/commands/program_command.hpp"

#include <memory>

namespace troupe::cli {

class compare_command : public program_command {
public:
  /// Adds the command below `load`, which outlives this.
  explicit compare_command(CLI::App& load);
  ~compare_command() override;

  int execute(interrupts& signals) const override;

private:
  struct arguments;

  std::unique_ptr<arguments> arguments_;
};

} // namespace troupe::cli
