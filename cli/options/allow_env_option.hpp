// `--allow-env`, shared by all commands that read agent files.

#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
} // namespace CLI

namespace troupe::cli {

/// Adds the option to `command`. `names` must outlive the parsing. A text that
/// is not the name of a variable does not parse.
void add_allow_env(CLI::App& command, std::vector<std::string>& names);

} // namespace troupe::cli
