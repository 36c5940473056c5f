// Converts events to and from rows of the log in a PostgreSQL store.

#pragma once

#include "troupe/core/event.hpp"
#include "troupe/stores/postgres/connection.hpp"
#include "troupe/stores/store.hpp"

#include <string>
#include <string_view>

namespace troupe {

/// Appends an event's id as a text that PostgreSQL can store. An id that
/// contains a NUL or starts with a quote is stored as JSON.
result<void> append_postgres_id(std::string& target, std::string_view id);

/// Reads the event of a row. The columns time, event, delta and body start at
/// column `first`. Fails with `errc::corrupt`.
result<event_ptr>
read_postgres_event(const postgres_rows& rows, int row, int first);

/// Returns `errc::corrupt` for a stored text that cannot be read back.
error unreadable(std::string_view attempted, const error& why);

/// Applies one scope's share of a delta to `target`. Fails with
/// `errc::corrupt`.
result<void>
replay_delta(stored_scope& target, std::string_view delta, scope where);

} // namespace troupe
