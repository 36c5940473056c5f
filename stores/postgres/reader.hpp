// Loads from a PostgreSQL store. Most loads are one statement and so see one
// moment. The others read again if the session was removed or trimmed
// meanwhile. The known marks are compared after it on the same connection.

#pragma once

#include "troupe/stores/postgres/connection.hpp"
#include "troupe/stores/postgres/history.hpp"
#include "troupe/stores/shared/hot_states.hpp"
#include "troupe/stores/store.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe {

/// Implements `store::load_scope`. Fails with `errc::corrupt` on a gap in the
/// rows that are replayed.
result<std::optional<stored_scope>>
load_postgres_scope(postgres_connection& connection,
                    postgres_history& history,
                    hot_states& hot,
                    const owner_name& owner);

/// Implements `store::load_session`. Fails as above.
result<std::optional<stored_session>>
load_postgres_session(postgres_connection& connection,
                      postgres_history& history,
                      const owner_name& owner,
                      const load_options& options);

/// Implements `store::load_session_at`. Replays the log of the session from its
/// creation or its first state, page by page.
result<std::optional<stored_session>>
load_postgres_at(postgres_connection& connection,
                 postgres_history& history,
                 const session_key& key,
                 std::uint64_t revision,
                 std::size_t events_max);

result<std::vector<event_ptr>>
load_postgres_events(postgres_connection& connection,
                     postgres_history& history,
                     const owner_name& owner,
                     std::uint64_t first,
                     std::uint64_t last);

/// Implements `store::find_events`.
result<std::vector<event_ptr>>
find_postgres_events(postgres_connection& connection,
                     postgres_history& history,
                     const owner_name& owner,
                     std::span<const std::string> ids);

} // namespace troupe
