// A drawing in the form of ADK's `GET /dev/apps/{app}/build_graph`, and the
// nodes that this and `build_graph_image` name by paths.
//
// The form follows google-adk 2.13, `cli/utils/graph_serialization.py`.

#pragma once

#include "troupe/agents/drawings/diagram.hpp"
#include "troupe/core/json.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::drawings {

/// Returns `{"name", "description", "sub_agents": [NODE, …],
/// "rerun_on_resume": bool, "wait_for_output": bool}` and the facts with a
/// field. An LLM agent also has `"tools": [{"name", "type": "tool"}, …]`, with
/// those that its toolsets know, or the name of a toolset that knows none. A
/// workflow has `"graph": {"nodes": [NODE with "type", …], "edges":
/// [{"from_node", "to_node", "route"}, …]}` in place of `sub_agents`. All keys
/// are snake_case.
json to_adk_form(const node& shown);

/// Returns the agent below `root` at a path of names such as `reviews/writer`,
/// which may begin with the root's name; null if there is none. An empty path
/// leads to `root`.
const node* find_below(const node& root, std::string_view path);

/// Returns the workflows in `root`, itself included, by their paths: `path` is
/// that of `root`.
std::vector<std::pair<std::string, const node*>>
workflows_below(const node& root, const std::string& path);

} // namespace troupe::drawings
