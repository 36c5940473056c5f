#include "troupe/cli/adk/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>

namespace troupe::cli {

namespace {

struct needed_table {
  std::string_view name;
  std::initializer_list<std::string_view> columns;
};

const std::array<needed_table, 4> needed{{
  {"sessions", {"app_name", "user_id", "id", "state", "update_time"}},
  {"events",
   {"id",
    "app_name",
    "user_id",
    "session_id",
    "invocation_id",
    "timestamp",
    "event_data"}},
  {"app_states", {"app_name", "state"}},
  {"user_states", {"app_name", "user_id", "state"}},
}};

// Returns the first missing part of a database of ADK, or an empty text.
std::string missing_part(const adk_schema& found) {
  for (const auto& [name, columns] : needed) {
    const auto table = found.tables.find(name);
    if (table == found.tables.end())
      return fmt::format("it has no table {}", name);
    for (const auto column : columns)
      if (!table->second.contains(column))
        return fmt::format("its table {} has no column {}", name, column);
  }
  return {};
}

// The layout before schema version 1 keeps the actions of events as a pickle of
// Python, which only Python can read.
bool is_pickled(const adk_schema& found) {
  if (found.version)
    return *found.version == "0";
  const auto events = found.tables.find("events");
  return events != found.tables.end() && events->second.contains("actions")
         && !events->second.contains("event_data");
}

} // namespace

result<adk_layout> find_layout(const adk_schema& found, std::string_view name) {
  if (is_pickled(found))
    return error(
      errc::invalid_argument,
      fmt::format("{} has ADK's old layout, whose events are pickled: migrate "
                  "it with 'adk migrate session --source_db_url=OLD_URL "
                  "--dest_db_url=NEW_URL', and import the new database",
                  name));
  if (found.version && *found.version != "1")
    return error(errc::invalid_argument,
                 fmt::format("{} has version '{}' of ADK's layout, and only "
                             "version 1 can be read",
                             name,
                             *found.version));
  if (const auto missing = missing_part(found); !missing.empty())
    return error(errc::invalid_argument,
                 fmt::format("{} is no database of ADK: {}", name, missing));
  const auto& type = found.tables.at("events").at("timestamp");
  return !found.version && type == "REAL" ? adk_layout::sqlite_service
                                          : adk_layout::database_service;
}

} // namespace troupe::cli
