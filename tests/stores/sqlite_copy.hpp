// A copy of a SQLite database, for tests that make a backup or restore it.

#pragma once

#include <boost/test/unit_test.hpp>
#include <sqlite3.h>

#include <filesystem>

namespace troupe::testing {

// Copies the database with SQLite, under its locks.
inline void copy_database(const std::filesystem::path& from,
                          const std::filesystem::path& to) {
  sqlite3* source = nullptr;
  sqlite3* target = nullptr;
  BOOST_REQUIRE(sqlite3_open(from.c_str(), &source) == SQLITE_OK);
  BOOST_REQUIRE(sqlite3_open(to.c_str(), &target) == SQLITE_OK);
  auto* const copying = sqlite3_backup_init(target, "main", source, "main");
  BOOST_REQUIRE(copying != nullptr);
  BOOST_TEST(sqlite3_backup_step(copying, -1) == SQLITE_DONE);
  sqlite3_backup_finish(copying);
  sqlite3_close(source);
  sqlite3_close(target);
}

} // namespace troupe::testing
