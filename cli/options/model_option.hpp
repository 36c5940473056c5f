// `--model`, shared by the commands that replace the models of agent files.

#pragma once

#include "troupe/agents/agent_file.hpp"

#include <string>
#include <vector>

namespace CLI {
class App;
} // namespace CLI

namespace troupe::cli {

struct model_option {
  std::vector<std::string> names;

  /// Adds the option to `command`. This must outlive the parsing.
  void add_to(CLI::App& command);

  /// Opens the models by `options.open`, which is set, and sets
  /// `options.model`; without the option, does nothing. Fails as `open_model`
  /// does.
  result<void> apply(agent_file_options& options) const;
};

} // namespace troupe::cli
