// The rows of a database of ADK Python, as they are stored.
//
// The tables are read in one transaction that only reads, so all answers belong
// to one moment.

#pragma once

#include "troupe/cli/sessions/import.hpp"
#include "troupe/core/event.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::cli {

/// The layouts that keep events as JSON, by the class of ADK that makes them.
enum class adk_layout : std::uint8_t {
  database_service, ///< `DatabaseSessionService`, schema version 1.
  sqlite_service,   ///< `SqliteSessionService`.
};

/// A row of `sessions` without its state. Names are as stored: not trimmed.
struct adk_session {
  session_key key;
  timestamp update_time{};
};

/// A row of `events`.
struct adk_event {
  std::string id;
  std::string invocation_id;
  std::optional<timestamp> time; ///< Unset if it is no time.
  std::string data;              ///< JSON; empty for NULL.
};

/// The tables of one database. All calls fail with `errc::store_failed`, or
/// with `errc::corrupt` if the database is damaged. Not thread-safe.
class adk_tables {
public:
  using owner = import_source::owner;

  adk_tables() = default;
  adk_tables(const adk_tables&) = delete;
  adk_tables& operator=(const adk_tables&) = delete;
  virtual ~adk_tables() = default;

  virtual adk_layout layout() const noexcept = 0;

  /// Fails with `errc::invalid_argument` if an update time is no time.
  virtual result<std::vector<adk_session>> sessions() = 0;

  /// The rows of `app_states` and `user_states`.
  virtual result<std::vector<owner>> owners() = 0;

  virtual result<std::string> state_of(const session_key& key) = 0;

  /// Returns an empty text for an owner without a row.
  virtual result<std::string> state_of(const owner& wanted) = 0;

  /// Calls `each` with the events of a session in ADK's order, until it fails.
  virtual result<void>
  read_events(const session_key& key,
              const std::function<result<void>(const adk_event&)>& each)
    = 0;

  /// Fails with `errc::store_failed` if another program may have changed the
  /// database since it was opened.
  virtual result<void> finish() { return {}; }
};

/// Opens a SQLite file read-only and finds its layout. Fails with
/// `errc::invalid_argument` if it is no database of ADK, or has a layout that
/// cannot be read.
result<std::unique_ptr<adk_tables>> open_adk_sqlite(const std::string& path);

/// The same for a PostgreSQL database. Fails with `errc::invalid_argument` in a
/// build without PostgreSQL.
result<std::unique_ptr<adk_tables>> open_adk_postgres(const std::string& url);

/// The error about a row of a table.
error in_row(std::string_view table, std::string_view row, const error& why);

} // namespace troupe::cli
