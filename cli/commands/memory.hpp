// `troupe memory`: adds sessions to the memory of their users, searches it, and
// removes from it.

#pragma once

#include "troupe/cli/commands/program_command.hpp"
#include "troupe/cli/options/store_option.hpp"

#include <cstddef>
#include <string>

namespace troupe::cli {

class memory_command : public program_command {
public:
  /// Adds the command to `program`, which outlives this.
  explicit memory_command(CLI::App& program);

  int execute(interrupts& signals) const override;

private:
  CLI::App& add_subcommand(const std::string& name,
                           const std::string& description,
                           const std::string& example);
  int add(interrupts& signals) const;
  int search(interrupts& signals) const;
  int remove(interrupts& signals) const;

  // Arguments.
  store_option store_;
  std::string app_;
  std::string user_ = "user";
  std::string session_;
  std::string id_;
  std::string query_;
  std::size_t limit_ = 10;

  const CLI::App* add_;
  const CLI::App* search_;
};

} // namespace troupe::cli
