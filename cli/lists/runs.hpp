// `troupe runs`: the open runs of a store.

#pragma once

#include "troupe/cli/commands/program_command.hpp"
#include "troupe/cli/options/store_option.hpp"

#include <cstddef>
#include <string>

namespace troupe::cli {

class runs_command final : public program_command {
public:
  /// Adds the command to `program`, which outlives this.
  explicit runs_command(CLI::App& program);

  int execute(interrupts& signals) const override;

private:
  // Arguments.
  store_option store_;
  std::string app_;
  std::size_t limit_ = 100;
  bool as_json_ = false;
};

} // namespace troupe::cli
