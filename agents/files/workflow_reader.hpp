// Reads the edges of a workflow in an agent file, and the nodes that stand in
// them, in the form of ADK's `Workflow`.

#pragma once

#include "troupe/agents/files/fields.hpp"
#include "troupe/agents/workflow.hpp"

#include <functional>
#include <optional>
#include <string>

namespace troupe {

/// Reads agents and tools that are nodes. Failures are
/// `errc::invalid_argument` and name file and line.
struct node_sources {
  /// Reads an agent that is written in the file, or that `config_path` names.
  std::function<result<agent>(const std::filesystem::path& file,
                              const yaml_node& node)>
    read_agent;
  /// Reads an item as in the field `tools` of an LLM agent: one tool.
  std::function<result<tool>(const std::filesystem::path& file,
                             const yaml_node& item)>
    read_tool;
  /// The tool of the program with that name; unset if there is none.
  std::function<std::optional<tool>(const std::string& name)> find_tool;
};

/// Reads the fields of a workflow but for those that every class has. The nodes
/// and edges are not checked against each other; `workflow` does that.
result<workflow_options> read_workflow(const field_reader& fields,
                                       const node_sources& sources);

} // namespace troupe
