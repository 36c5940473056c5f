// A tool as a server describes it.

#pragma once

#include "troupe/core/json.hpp"

#include <memory>
#include <string>
#include <vector>

namespace troupe::mcp {

struct offered_tool {
  std::string name;
  std::string description;
  /// JSON Schema of the arguments, as the server gave it.
  json schema;
  /// False only if the server says that the tool changes nothing, or destroys
  /// nothing. These are hints of the server.
  bool is_destructive = true;
};

/// A successful answer never holds null.
using offer = std::shared_ptr<const std::vector<offered_tool>>;

/// Adds the tools of one page of `tools/list`. Entries without a name are
/// skipped. Returns the cursor of the next page; empty at the end.
std::string add_tools(const json& page, std::vector<offered_tool>& tools);

} // namespace troupe::mcp
