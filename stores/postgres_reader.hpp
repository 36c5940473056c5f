// The loads of the PostgreSQL store. Each is one statement, and so sees one
// moment. The marks of the commits are compared behind it.

#pragma once

#include "troupe/stores/postgres_connection.hpp"
#include "troupe/stores/postgres_history.hpp"
#include "troupe/stores/store.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe {

/// Of a user or an app, only the scope. Fails with `errc::corrupt` on a gap in
/// what is replayed or returned.
result<std::optional<stored_session>>
load_postgres(postgres_connection& connection,
              postgres_history& history,
              const owner_name& owner,
              const load_options& options);

result<std::vector<event_ptr>>
load_postgres_events(postgres_connection& connection,
                     postgres_history& history,
                     const owner_name& owner,
                     std::uint64_t first,
                     std::uint64_t last);

/// As `store::find_events`.
result<std::vector<event_ptr>>
find_postgres_events(postgres_connection& connection,
                     postgres_history& history,
                     const owner_name& owner,
                     std::span<const std::string> ids);

/// As of the folded state.
result<std::vector<session_row>>
list_postgres_sessions(postgres_connection& connection,
                       postgres_history& history,
                       const row_query& query);

} // namespace troupe
