// The tables of a SQLite store, and how a file comes to have them.

#pragma once

#include "troupe/stores/sqlite_database.hpp"

namespace troupe {

/// In the file's header: whose file it is ("trpe").
inline constexpr std::int64_t sqlite_application_id = 0x74727065;

/// Of the tables; what a release that reads another layout counts up.
inline constexpr std::int64_t sqlite_schema_version = 4;

enum class sqlite_contents : std::uint8_t {
  none, ///< Missing, empty, or left before its tables were made.
  ours,
};

/// Whether there is a file of ours, without changing anything. Throws
/// `errc::store_failed` when there is no way to one (no parent folder, a
/// folder in its place), and `errc::corrupt` when it is no file of troupe's or
/// of a newer version.
sqlite_contents inspect_sqlite_file(const sqlite_settings& settings);

/// Throws `errc::store_failed` if the file of ours has an older layout.
void expect_newest_layout(const sqlite_settings& settings);

/// Brings a file of ours that has an older layout up to this one.
void bring_forward(const sqlite_settings& settings);

/// Opens the file for writing; makes it, readable by its owner alone, and its
/// tables, where they are missing. Throws as `inspect_sqlite_file`.
sqlite_database open_sqlite_writer(const sqlite_settings& settings);

} // namespace troupe
