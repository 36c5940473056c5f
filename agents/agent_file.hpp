// Agent files: a tree of agents in YAML or JSON, in the format of ADK's
// Agent Config.
//
// Nothing is skipped silently: an unknown field or value is an error that names
// file and line.

#pragma once

#include "troupe/agents/agent.hpp"
#include "troupe/agents/mcp_source.hpp"
#include "troupe/agents/tool.hpp"
#include "troupe/agents/toolset.hpp"
#include "troupe/core/dotenv.hpp"
#include "troupe/models/fallback_model.hpp"
#include "troupe/models/open_model.hpp"

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// Limit of the depth of nested agents, including agents that are tools.
inline constexpr std::size_t agent_file_depth_max = 64;
/// Limit of the number of agents in the tree of one file, including agents that
/// are tools.
inline constexpr std::size_t agent_file_agents_max = 10'000;

/// Callbacks by name, as agent files refer to them.
struct callback_registry {
  /// Map from the name in a file to the callback.
  template <class Callback>
  using by_name = std::map<std::string, Callback, std::less<>>;

  by_name<agent_callback> agent; ///< For before and after.
  /// For `before_model_callbacks`.
  by_name<before_model_callback> before_model;
  /// For `after_model_callbacks`.
  by_name<after_model_callback> after_model;
  /// For `on_model_error_callbacks`.
  by_name<model_error_callback> on_model_error;
  /// For `before_tool_callbacks`.
  by_name<before_tool_callback> before_tool;
  /// For `after_tool_callbacks`.
  by_name<after_tool_callback> after_tool;
  /// For `on_tool_error_callbacks`.
  by_name<tool_error_callback> on_tool_error;
};

/// Names that agent files may use, and values that replace those in them.
struct agent_file_options {
  /// Tools that `tools` may name.
  tool_registry tools;
  /// Callbacks that the files may name.
  callback_registry callbacks = {};
  /// Replaces the model of every agent. The models that the files name are not
  /// opened then, and may be missing.
  model_ptr model = {};
  /// Environment variables that `key_env` may name, in addition to those of the
  /// vendors (`open_model_options::allowed_variables`), and that an
  /// `McpToolset` or a tool that is a program may name.
  std::vector<std::string> allowed_variables = {};
  /// Variables of a `.env` file, from `find_dotenv`, for keys of models,
  /// `${NAME}` and the fields that name variables. They count where the
  /// environment does not have them. Empty: none.
  dotenv_file dotenv = {};
  /// Opens the models that the files name. `usual` has `allowed_variables`,
  /// `allowed_commands`, `dotenv`, and the folder where relative paths start.
  /// Unset: `open_model(source, usual)`.
  std::function<result<model_ptr>(const model_source& source,
                                  const open_model_options& usual)>
    open = {};
  /// Called when a model of a list has failed and the next one is asked, on any
  /// thread. Must be short and must not throw.
  std::function<void(const model_fallback&)> on_fallback = {};
  /// Programs that the files may start, as tools or MCP servers: names as in
  /// the files, or paths, which start at the working folder and allow the
  /// program at that place. A file that names another one is refused before
  /// anything starts.
  std::vector<std::string> allowed_commands = {};
  /// Makes the tools of an `McpToolset`; use `mcp_tools`
  /// (troupe/mcp/mcp_tools.hpp) and let it connect on demand. Called after the
  /// whole tree was read without an error. Unset: a file with one is refused.
  std::function<toolset_ptr(const mcp_source& source)> open_toolset = {};
  /// Fields that replace or extend those in the files, by agent name:
  /// `{"writer": {"instruction": "Be brief."}}`. A null removes a field. A name
  /// without an agent is an error.
  std::map<std::string, json, std::less<>> overrides = {};
  /// Called before each tool of every agent in the files, before the callbacks
  /// that the files name.
  std::vector<before_tool_callback> before_tool = {};
  /// True for agents that are shown and never run (agents/drawing.hpp). Models,
  /// tools and MCP servers are then stand-ins: no key, variable, script or
  /// permission is needed, and nothing is started or asked. Their calls fail
  /// with `errc::invalid_argument`. `open`, `open_toolset`, `dotenv` and the
  /// lists of allowed programs and variables are not used.
  bool only_shown = false;
};

/// Reads an agent and everything below it. For a folder, reads
/// `root_agent.yaml` in it.
///
/// A file holds a mapping with the fields that docs/agent_files.md lists; a
/// field that is null counts as left out. Relative paths start at the folder of
/// the file that names them. An LLM agent without a model uses that of the
/// nearest LLM agent above it. A script that several agents of the tree use is
/// one model.
///
/// If the tree has MCP servers, all are asked for their tools at the same time,
/// and the call waits for them. Agents that name a server in the same way share
/// its connection.
///
/// Fails with `errc::not_found` if `file` does not exist. Other failures are
/// `errc::invalid_argument`, with a message that starts with `FILE:LINE: `. The
/// rules follow ADK's Agent Config.
result<agent> load_agent_file(const std::filesystem::path& file,
                              const agent_file_options& options = {});

} // namespace troupe
