// Help that begins with an example.

#pragma once

#include <string>

namespace CLI {
class App;
} // namespace CLI

namespace troupe::cli {

/// Makes the help of `command` begin with `example`. Each line is one command;
/// the commands work one after another in an empty folder. Call it before
/// subcommands are added, since they inherit the example, or call it for each
/// of them.
void show_example(CLI::App& command, std::string example);

} // namespace troupe::cli
