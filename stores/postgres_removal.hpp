// What is left of a removed scope in a PostgreSQL store: its share of nothing,
// and a row of the log that tells others.

#pragma once

#include "troupe/stores/postgres_connection.hpp"
#include "troupe/stores/postgres_plan.hpp"

#include <cstdint>
#include <string_view>

namespace troupe {

/// Removes the scope with its rows; those that also touched a wider one keep
/// its share. What is queued last is left in the pipeline. Must hold the lock
/// of the folding, which would bring the state back. Of a user, the sessions
/// must have been removed before.
result<void> remove_postgres_scope(postgres_connection& connection,
                                   const planned_removal& removal,
                                   std::int64_t writer,
                                   std::string_view attempted);

} // namespace troupe
