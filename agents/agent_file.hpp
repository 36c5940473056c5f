// Agent files: an agent tree described in YAML or JSON, in the format of ADK's
// Agent Config.
//
// Nothing of a file is skipped in silence: what is not understood is an error
// that names file and line.

#pragma once

#include "troupe/agents/agent.hpp"
#include "troupe/agents/tool.hpp"
#include "troupe/models/open_model.hpp"

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// Agents below each other in one tree, and agents of one tree, that a file may
/// describe.
inline constexpr std::size_t agent_file_depth_max = 64;
inline constexpr std::size_t agent_file_agents_max = 10'000;

/// Callbacks by name, as agent files refer to them.
struct callback_registry {
  template <class Callback>
  using by_name = std::map<std::string, Callback, std::less<>>;

  by_name<agent_callback> agent; ///< Before and after.
  by_name<before_model_callback> before_model;
  by_name<after_model_callback> after_model;
  by_name<model_error_callback> on_model_error;
  by_name<before_tool_callback> before_tool;
  by_name<after_tool_callback> after_tool;
  by_name<tool_error_callback> on_tool_error;
};

struct agent_file_options {
  /// What `tools` may name.
  tool_registry tools;
  /// What the fields of callbacks may name.
  callback_registry callbacks = {};
  /// Replaces the model of every agent; models that the files name are then not
  /// opened, and may be missing.
  model_ptr model = {};
  /// Environment variables that `key_env` may name, besides those that vendors
  /// use (`open_model_options::allowed_variables`).
  std::vector<std::string> allowed_variables = {};
  /// Opens the models that the files name, `base` being where relative paths
  /// start; unset: `open_model` with `allowed_variables`.
  std::function<result<model_ptr>(const model_source& source,
                                  const std::filesystem::path& base)>
    open = {};
  /// Fields that take the place of those in the files, or come on top, by agent
  /// name: `{"writer": {"instruction": "Be brief."}}`. A null leaves a field
  /// out. Each has to find its agent.
  std::map<std::string, json, std::less<>> overrides = {};
};

/// Reads an agent and everything below it. A folder stands for the
/// `root_agent.yaml` in it.
///
/// A file holds a mapping of the fields that docs/agent_files.md lists; a field
/// that is null counts as left out. Relative paths start at the file that names
/// them. An LLM agent without a model uses that of the nearest LLM agent above
/// it. One script used by several agents of the tree is one model.
///
/// Fails with `errc::not_found` if `file` does not exist, and otherwise with
/// `errc::invalid_argument` and a reason that starts with `FILE:LINE: `. Rules
/// follow ADK's Agent Config.
result<agent> load_agent_file(const std::filesystem::path& file,
                              const agent_file_options& options = {});

} // namespace troupe
