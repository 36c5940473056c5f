// The field `isolationScope` of events that belong to a task: the id of the
// call that delegated the task. Other events do not have it.

#pragma once

#include "troupe/core/event.hpp"

#include <string>
#include <utility>

namespace troupe {

inline constexpr const char* scope_field = "isolationScope";

/// Returns the id of the delegating call; empty for an event of no task.
inline std::string scope_of(const event& said) {
  return said.extra.is_null() ? std::string() : said.field(scope_field);
}

/// Marks an event as one of the task that call `scope` delegated. An empty
/// `scope` removes the mark.
inline void set_scope(event& said, const std::string& scope) {
  if (scope.empty() && scope_of(said).empty())
    return;
  auto fields = said.extra.is_null() ? json::object() : said.extra.data();
  if (scope.empty())
    fields.erase(scope_field);
  else
    fields[scope_field] = scope;
  said.extra = fields.empty() ? value() : value(std::move(fields));
}

} // namespace troupe
