// The loads of the PostgreSQL store. Each is one statement, and so sees one
// moment.

#pragma once

#include "troupe/stores/postgres_connection.hpp"
#include "troupe/stores/store.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace troupe {

/// Of a user or an app, only the scope.
result<std::optional<stored_session>>
load_postgres(postgres_connection& connection,
              const owner_name& owner,
              const load_options& options);

result<std::vector<event_ptr>>
load_postgres_events(postgres_connection& connection,
                     const owner_name& owner,
                     std::uint64_t first,
                     std::uint64_t last);

/// As of the folded state.
result<std::vector<session_row>>
list_postgres_sessions(postgres_connection& connection, const row_query& query);

} // namespace troupe
