// The subcommands of a command. All of them share one set of arguments.

#pragma once

#include "troupe/cli/options/example_first.hpp"
#include "troupe/cli/terminal/interrupts.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace troupe::cli {

/// `Arguments` has a member `store`, a `store_option` that each subcommand has.
template <class Arguments>
class subcommand_table {
public:
  using action = int (*)(const Arguments&, interrupts&);

  /// `command`, which outlives this, then needs one of its subcommands.
  explicit subcommand_table(CLI::App& command) : parent_(command) {
    parent_.require_subcommand(1);
    // Set before the subcommands, which inherit it.
    parent_.footer(
      "Exit codes: 0 done; 1 a rule was broken or it failed; 2 the command "
      "line is wrong;\n130 and 143 after Ctrl-C and SIGTERM.");
  }

  /// Adds a subcommand that calls `run`.
  CLI::App& add(const std::string& name,
                const std::string& description,
                const std::string& example,
                action run) {
    auto& added = *parent_.add_subcommand(name, description);
    show_example(added, example);
    actions_.emplace_back(&added, run);
    chosen.store.add_to(added);
    return added;
  }

  /// Runs the subcommand that was chosen; returns the exit code.
  int execute(interrupts& signals) const {
    const auto found = std::ranges::find_if(
      actions_, [](const auto& each) { return each.first->parsed(); });
    return found->second(chosen, signals);
  }

  Arguments chosen;

private:
  CLI::App& parent_;
  std::vector<std::pair<const CLI::App*, action>> actions_;
};

} // namespace troupe::cli
