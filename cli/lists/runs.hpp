// `troupe runs`: the open runs of a store, listed or given up.

#pragma once

#include "troupe/cli/commands/program_command.hpp"
#include "troupe/cli/options/store_option.hpp"
#include "troupe/cli/terminal/output.hpp"
#include "troupe/runtime/runtime.hpp"

#include <cstddef>
#include <optional>
#include <string>

namespace troupe::cli {

class runs_command final : public program_command {
public:
  /// Adds the command to `program`, which outlives this.
  explicit runs_command(CLI::App& program);

  int execute(interrupts& signals) const override;

private:
  result<unfinished_run> find_run(runtime& owners) const;
  result<void> close(runtime& owners, output& target) const;

  // Arguments.
  store_option store_;
  std::string app_;
  std::optional<std::string> close_;
  std::size_t limit_ = 100;
  bool as_json_ = false;
};

} // namespace troupe::cli
