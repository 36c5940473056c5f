// The `troupe` program with tools and callbacks of your own.
//
//   int main(int count, char** words) {
//     return troupe::cli_main(count, words, {.tools = {opening_hours()}});
//   }
//
// Link `troupe::cli`. `troupe init NAME` makes such a program.

#pragma once

#include "troupe/agents/agent_file.hpp"
#include "troupe/agents/tool.hpp"

#include <vector>

namespace troupe {

/// Additions of a program to `troupe`.
struct cli_options {
  /// Tools that agent files may name, beside `standard_tools`. One of the same
  /// name takes the place of a standard tool.
  std::vector<tool> tools = {};
  /// Callbacks that agent files may name.
  callback_registry callbacks = {};
};

/// Runs the command line of `troupe`, with all its commands, and returns the
/// exit code for `main` (see docs/command_line.md). Errors are printed to
/// stderr, those of `own` too, such as two tools of one name; nothing is
/// thrown.
///
/// Call it once, first in `main` and before any other thread exists: it takes
/// over Ctrl-C and SIGTERM, and ends the program with a message when memory is
/// short.
int cli_main(int count, char** words, cli_options own = {});

} // namespace troupe
