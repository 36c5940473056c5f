// troupe's tables in a PostgreSQL database, and what every connection to them
// sets.

#pragma once

#include "troupe/stores/open_store.hpp"
#include "troupe/stores/postgres_connection.hpp"

#include <chrono>
#include <cstdint>
#include <string>

namespace troupe {

/// How long a statement of a commit or a load may take.
inline constexpr std::chrono::seconds postgres_deadline{30};
/// How long one that works through many rows may take.
inline constexpr std::chrono::seconds postgres_long_deadline{600};

/// How long bringing the tables to the newest version may take.
inline constexpr std::chrono::hours postgres_migration_deadline{24};

/// The version of the tables that this program reads and writes.
inline constexpr std::int64_t postgres_layout = 2;

/// What is decided once for a store, when it is opened.
struct postgres_setup {
  std::string schema;
  bool is_durable = true;
  bool read_only = false;
  /// Held by a transaction that commits changes, so that the log's numbers are
  /// in the order of the commits.
  std::int64_t commit_lock = 0;
  /// Held by a transaction that folds the log into the state, or that removes.
  std::int64_t fold_lock = 0;
};

/// Finds the schema that the connection's URL asks for, and makes the tables or
/// brings them to the newest version; for reading alone they must have it.
/// Fails with `errc::store_failed` or, if a newer troupe made them,
/// `errc::corrupt`.
result<postgres_setup> prepare_schema(postgres_connection& connection,
                                      const store_options& options);

/// Sets what a connection needs before it is used. Fails if the server is a
/// standby, which may lag; for reading alone that is allowed.
result<void> prepare_session(postgres_connection& connection,
                             const postgres_setup& setup);

} // namespace troupe
