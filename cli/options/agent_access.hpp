// `--allow-env`, `--allow-command` and `--no-dotenv`, shared by all commands
// that read agent files: the variables and programs that a file may use.

#pragma once

#include "troupe/agents/agent_file.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace CLI {
class App;
} // namespace CLI

namespace troupe::cli {

struct agent_access {
  std::vector<std::string> variables;
  std::vector<std::string> commands;
  bool skips_dotenv = false;

  /// Adds the options to `command`. This must outlive the parsing.
  void add_to(CLI::App& command);

  /// Lets the files that are read with `options` use these variables and
  /// programs.
  /// Servers that they name are started once for all of them.
  void grant(agent_file_options& options) const;

  /// Finds the `.env` of an agent file, or of a folder with one, and lets the
  /// file use it, unless `--no-dotenv` or ADK's variable
  /// `ADK_DISABLE_LOAD_DOTENV` is set. Fails as `find_dotenv`.
  result<void> read_dotenv(const std::filesystem::path& agent_file,
                           agent_file_options& options) const;
};

} // namespace troupe::cli
