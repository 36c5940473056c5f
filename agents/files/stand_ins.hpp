// Stand-ins for the models, tools and MCP servers of agents that are shown and
// never run (`agent_file_options::only_shown`).
//
// Nothing is opened or started for them. A call of one fails with
// `errc::invalid_argument`.

#pragma once

#include "troupe/agents/mcp_source.hpp"
#include "troupe/agents/tool.hpp"
#include "troupe/agents/toolset.hpp"
#include "troupe/models/model.hpp"

#include <optional>
#include <string>

namespace troupe {

/// Returns a model that has this name and accepts every tool of a vendor.
result<model_ptr> shown_model(std::string name);

/// Returns the tool without its function. A tool that is an agent stays as it
/// is.
tool shown_tool(const tool& made);

/// Returns a tool of the program that is not known, for the name of a node.
/// Unset if no tool can have this name.
std::optional<tool> shown_program_tool(const std::string& name);

/// Returns a set with the program or address of the server as its name, without
/// passwords and query. Its tools are those of `tool_filter`, which are all
/// that is known without the server.
toolset_ptr shown_toolset(const mcp_source& source);

} // namespace troupe
