// The tables of a SQLite store, their creation and their migration.

#pragma once

#include "troupe/stores/sqlite/database.hpp"

namespace troupe {

/// The `application_id` in the header of a file of troupe ("trpe").
inline constexpr std::int64_t sqlite_application_id = 0x74727065;

/// Version of the tables. Increase it when a release changes the layout.
inline constexpr std::int64_t sqlite_schema_version = 9;

enum class sqlite_contents : std::uint8_t {
  none, ///< The file is missing, empty, or has no tables.
  ours, ///< The file is a store of troupe.
};

/// Says whether there is a store; changes nothing. Throws `errc::store_failed`
/// if the file cannot exist or be read (no parent folder, a folder in its
/// place), and `errc::corrupt` if it is not a file of troupe or has a newer
/// version.
sqlite_contents inspect_sqlite_file(const sqlite_settings& settings);

/// Throws `errc::store_failed` if the store has an older layout.
void expect_newest_layout(const sqlite_settings& settings);

/// Migrates a store that has an older layout to the newest one.
void bring_forward(const sqlite_settings& settings);

/// Opens the file for writing. Creates the file, accessible only to its owner,
/// and the tables where they are missing. Throws as `inspect_sqlite_file`.
sqlite_database open_sqlite_writer(const sqlite_settings& settings);

} // namespace troupe
