#include "troupe/cli/options/allow_env_option.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace troupe::cli {

void add_allow_env(CLI::App& command, std::vector<std::string>& names) {
  command
    .add_option("--allow-env",
                names,
                "Environment variable that key_env of agent files may name, in "
                "addition to the vendors' own; may be repeated")
    ->type_name("NAME")
    ->allow_extra_args(false)
    ->check([](const std::string& text) {
      return text.empty() || text.find('=') != std::string::npos
               ? fmt::format("'{}' is not the name of an environment variable",
                             text)
               : std::string();
    });
}

} // namespace troupe::cli
