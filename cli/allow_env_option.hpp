// `--allow-env`, the same for every command that reads agent files.

#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
} // namespace CLI

namespace troupe::cli {

/// Adds the option to `command`, which must not be parsed once `names` is gone.
/// A text that is no name of a variable does not parse.
void add_allow_env(CLI::App& command, std::vector<std::string>& names);

} // namespace troupe::cli
