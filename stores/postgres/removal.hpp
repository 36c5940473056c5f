// Deletes rows of the log: those of a removed scope, with a tombstone for other
// processes, and the oldest ones of a trimmed session. Rows that also touched a
// wider scope keep that part.

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

/// Notes the oldest revision that the session keeps, and deletes its rows up to
/// there, but for those that forks share. Changes nothing if it keeps no more
/// already. The last statements stay in the pipeline; run it. The transaction
/// must hold the fold lock; it folds the log if the session is not folded up to
/// that revision.
result<void> trim_postgres_session(postgres_connection& connection,
                                   const planned_trim& trim,
                                   std::string_view attempted);

} // namespace troupe
