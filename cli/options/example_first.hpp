// Help that begins with an example.

#pragma once

#include <string>

namespace CLI {
class App;
} // namespace CLI

namespace troupe::cli {

/// The help of `command` begins with `example`: one command on each line, which
/// work one after another in an empty folder. Call it before subcommands are
/// added, or for each of them: they inherit it.
void show_example(CLI::App& command, std::string example);

} // namespace troupe::cli
