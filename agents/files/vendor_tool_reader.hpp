// Reads tools that a model's vendor runs: items of `tools` such as
// `google_search`, and the field `code_executor`.

#pragma once

#include "troupe/agents/files/fields.hpp"
#include "troupe/agents/tool.hpp"
#include "troupe/models/model.hpp"

#include <optional>
#include <string_view>
#include <vector>

namespace troupe {

/// Returns the tool that a name means: `google_search`, the names of ADK for it
/// (`google.adk.tools.google_search`, `GoogleSearchTool`), and so on. Empty for
/// the name of another thing.
std::string_view vendor_tool_of(std::string_view name);

/// Returns true for an item of `tools` that is such a tool. A tool in `known`
/// has precedence.
bool is_vendor_tool(const yaml_node& item, const tool_registry& known);

/// A tool that a vendor runs, and its place in a file.
struct placed_vendor_tool {
  file_place at;
  vendor_tool which;
};

/// Reads these tools of an agent: `NAME`, or `{name: NAME, args: SETTINGS}`
/// with the settings in the vendor's form. `code_executor: BuiltInCodeExecutor`
/// is the tool `code_execution`. Fails with `errc::invalid_argument`, naming
/// file and line, also on a tool that comes twice.
result<std::vector<placed_vendor_tool>>
read_vendor_tools(const field_reader& fields, const tool_registry& known);

} // namespace troupe
