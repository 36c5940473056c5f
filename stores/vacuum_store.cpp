#include "troupe/stores/vacuum_store.hpp"

#include "troupe/stores/open_store.hpp"
#include "troupe/stores/sqlite/database.hpp"
#include "troupe/stores/sqlite/open.hpp"
#include "troupe/stores/sqlite/schema.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

#include <chrono>
#include <exception>
#include <filesystem>
#include <string>
#include <system_error>

namespace troupe {

namespace {

namespace fs = std::filesystem;

// How long to wait for a program that is just closing the file.
constexpr std::chrono::milliseconds others_wait{1'000};

std::uint64_t bytes_of(const fs::path& file) {
  std::uint64_t bytes = 0;
  for (const auto* const end : {"", "-wal"}) {
    std::error_code failed;
    const auto size = fs::file_size(file.string() + end, failed);
    bytes += failed ? 0 : size;
  }
  return bytes;
}

bool has_removals_left(const sqlite_settings& settings) {
  return sqlite_database(settings, sqlite_role::reader)
           .number("SELECT count(*) FROM purges")
         > 0;
}

// Folds the log and deletes the rows of all that was removed. One closing
// deletes a part.
void finish_removals(const sqlite_settings& settings) {
  do {
    open_sqlite_store(settings.file, settings.options).value()->close().value();
  } while (has_removals_left(settings));
}

// Programs learn of the removals of others by name, and there is no other
// program. The temporary copy is a file, because it may be larger than the
// memory. The new content goes through the write-ahead log: a program that is
// killed leaves the files that every one may leave.
void rewrite(const sqlite_settings& settings) {
  const sqlite_database database(settings, sqlite_role::alone);
  database.execute("PRAGMA synchronous=FULL");
  database.execute("PRAGMA secure_delete=ON");
  database.execute("PRAGMA temp_store=FILE");
  database.execute("DELETE FROM removals");
  database.execute("VACUUM");
  database.number("PRAGMA wal_checkpoint(TRUNCATE)");
  sqlite3_db_config(
    database.connection(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, nullptr);
}

vacuumed_store vacuum_file(const sqlite_settings& settings) {
  const auto& file = settings.file;
  vacuumed_store sizes{.bytes_before = bytes_of(file), .bytes_after = 0};
  if (inspect_sqlite_file(settings) == sqlite_contents::none) {
    if (!fs::exists(file))
      throw error(errc::not_found,
                  fmt::format("there is no file {}", file.string()));
    return sizes;
  }
  {
    // First of all: a store that others use is left as it is.
    const sqlite_database probe(settings, sqlite_role::alone);
  }
  finish_removals(settings);
  rewrite(settings);
  sizes.bytes_after = bytes_of(file);
  return sizes;
}

} // namespace

result<vacuumed_store> vacuum_store(std::string_view address,
                                    const store_options& options) {
  const auto parsed = read_store_address(address);
  if (!parsed)
    return parsed.error();
  if (parsed->kind == store_kind::postgres)
    return error(errc::invalid_argument,
                 "vacuum: this is for SQLite files; use VACUUM FULL in the "
                 "database");
  if (parsed->kind == store_kind::memory)
    return error(errc::invalid_argument, "vacuum: memory: has no file");
  if (parsed->kind == store_kind::apps)
    return error(errc::invalid_argument,
                 "vacuum: these are several databases; vacuum each SQLite file "
                 "of the rules by its own address");
  if (options.read_only)
    return error(
      errc::invalid_argument,
      "vacuum: a store that is opened read-only cannot be rewritten");
  try {
    return vacuum_file({.file = parsed->location,
                        .options = options,
                        .lock_timeout = others_wait});
  } catch (const error& failure) {
    return error(failure.code(), fmt::format("vacuum: {}", failure.message()));
  } catch (const std::exception& failure) {
    return error(errc::store_failed, fmt::format("vacuum: {}", failure.what()));
  }
}

} // namespace troupe
