// troupe's tables in a PostgreSQL database, and the settings of every
// connection to them.

#pragma once

#include "troupe/stores/postgres/connection.hpp"
#include "troupe/stores/store_options.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

/// Time limit for a statement of a commit or a load.
inline constexpr std::chrono::seconds postgres_deadline{30};
/// Time limit for a statement that works through many rows.
inline constexpr std::chrono::seconds postgres_long_deadline{600};

/// Time limit for migrating the tables to the newest version.
inline constexpr std::chrono::hours postgres_migration_deadline{24};

/// Version of the tables that this program reads and writes.
inline constexpr std::int64_t postgres_layout = 5;

/// Settings that are fixed when a store is opened.
struct postgres_setup {
  std::string schema;
  bool is_durable = true;
  bool read_only = false;
  /// Key of the advisory lock that a committing transaction holds, so that the
  /// log's numbers are in the order of the commits.
  std::int64_t commit_lock = 0;
  /// Key of the advisory lock that a transaction holds while it folds the log,
  /// or deletes rows of it.
  std::int64_t fold_lock = 0;
};

/// Returns the schema that the connection's URL names, `troupe` if it names
/// none. Fails with `errc::store_failed` if the database cannot hold troupe's
/// tables.
result<std::string> find_schema_name(postgres_connection& connection);

/// Returns the key of an advisory lock of a schema. Every process computes the
/// same key.
std::int64_t schema_lock(std::string_view purpose, std::string_view schema);

/// Finds the schema that the connection's URL names, and creates or migrates
/// the tables. A read-only store needs the newest version already. Fails with
/// `errc::store_failed`, or with `errc::corrupt` if a newer troupe made the
/// tables.
result<postgres_setup> prepare_schema(postgres_connection& connection,
                                      const store_options& options);

/// Prepares a new connection for use. Fails with `errc::store_failed` if the
/// server is a standby, which may lag; a read-only store accepts one.
result<void> prepare_session(postgres_connection& connection,
                             const postgres_setup& setup);

} // namespace troupe
