// `troupe users`: the users of an app, listed and removed.

#pragma once

#include "troupe/cli/commands/program_command.hpp"

#include <memory>

namespace troupe::cli {

class users_command : public program_command {
public:
  /// Adds the command to `program`, which outlives this.
  explicit users_command(CLI::App& program);
  ~users_command() override;

  int execute(interrupts& signals) const override;

private:
  struct arguments;

  const std::unique_ptr<arguments> arguments_;
};

} // namespace troupe::cli
