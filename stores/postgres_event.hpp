// Events as they lie in a PostgreSQL store's log.

#pragma once

#include "troupe/core/event.hpp"
#include "troupe/stores/postgres_connection.hpp"
#include "troupe/stores/store.hpp"

#include <string>
#include <string_view>

namespace troupe {

/// Appends an event's id as a text that PostgreSQL can hold: one with a NUL, or
/// with a quote in front, as JSON.
result<void> append_postgres_id(std::string& target, std::string_view id);

/// The event of a row with the columns time, event, delta and body, from column
/// `first` on. Fails with `errc::corrupt`.
result<event_ptr>
read_postgres_event(const postgres_rows& rows, int row, int first);

/// Replays the share of one scope of a delta's text. Fails with
/// `errc::corrupt`.
result<void>
replay_delta(stored_scope& target, std::string_view delta, scope where);

} // namespace troupe
