// Recognises the layout of a database of ADK by its tables.

#pragma once

#include "troupe/cli/adk/tables.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::cli {

/// The tables that matter, with the types of their columns.
struct adk_schema {
  using columns = std::map<std::string, std::string, std::less<>>;

  std::map<std::string, columns, std::less<>> tables;
  /// Value of `schema_version` in `adk_internal_metadata`; unset if there is
  /// none.
  std::optional<std::string> version;
};

/// Name of the table that has the schema version.
inline constexpr std::string_view adk_metadata_table = "adk_internal_metadata";

/// Fails with `errc::invalid_argument`; `name` names the database in the error.
result<adk_layout> find_layout(const adk_schema& found, std::string_view name);

} // namespace troupe::cli
