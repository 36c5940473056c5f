// `troupe apps`: the apps of a store, listed and removed.

#pragma once

#include "troupe/cli/commands/program_command.hpp"

#include <memory>

namespace troupe::cli {

class apps_command : public program_command {
public:
  /// Adds the command to `program`, which outlives this.
  explicit apps_command(CLI::App& program);
  ~apps_command() override;

  int execute(interrupts& signals) const override;

private:
  struct arguments;

  const std::unique_ptr<arguments> arguments_;
};

} // namespace troupe::cli
