// Deletes a scope's rows and logs a tombstone for other processes. Rows that
// also touched a wider scope keep that part.

#pragma once

#include "troupe/stores/postgres/connection.hpp"
#include "troupe/stores/postgres/plan.hpp"

#include <cstdint>
#include <string_view>

namespace troupe {

/// Removes the scope with its rows. The last statements stay in the pipeline;
/// run it. The transaction must hold the fold lock, because a concurrent fold
/// would write the state again. Sessions of a user must be removed before the
/// user.
result<void> remove_postgres_scope(postgres_connection& connection,
                                   const planned_removal& removal,
                                   std::int64_t writer,
                                   std::string_view attempted);

} // namespace troupe
