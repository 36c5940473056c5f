// Detects that the path of an open file no longer leads to the same file.
//
// A file can be removed, replaced, truncated or overwritten while it is
// open. In write-ahead mode SQLite does not check: a commit into a removed
// file succeeds. So each transaction compares the file with the facts of the
// last check.

#pragma once

#include "troupe/stores/sqlite/database.hpp"

#include <array>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace troupe {

/// Identifies one write-ahead log: the salts of its header.
using sqlite_log_salt = std::array<unsigned char, 8>;

/// Thrown if the file is no longer the one that this process knows.
class sqlite_history_lost : public std::exception {
public:
  enum class cause : std::uint8_t {
    removed,     // There is no file under the path.
    replaced,    // Another file is under the path.
    overwritten, // A program that is not SQLite wrote to the file.
    went_back,   // The newest known commit is not in the file.
  };

  sqlite_history_lost(cause why, std::vector<sqlite_log_salt> logs)
    : why_(why),
      logs_(std::move(logs)) {}

  cause why() const noexcept { return why_; }

  /// The salts of the write-ahead logs that belonged to the lost file.
  const std::vector<sqlite_log_salt>& logs() const noexcept { return logs_; }

  const char* what() const noexcept override;

private:
  cause why_;
  std::vector<sqlite_log_salt> logs_;
};

/// Identifies a file of the system, whatever its path.
struct sqlite_file_id {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;

  friend bool operator==(const sqlite_file_id&, const sqlite_file_id&)
    = default;
};

/// The file that all connections of one store have open. It outlives a
/// connection, so that the next connection cannot open another file unnoticed.
/// Safe from any thread.
class sqlite_known_file {
public:
  /// Throws `sqlite_history_lost` if a file is known and `path` does not lead
  /// to it.
  void expect_at(const std::filesystem::path& path) const;

  /// Records the file and its write-ahead logs. Returns false and records
  /// nothing if another file is known.
  bool see(const sqlite_file_id& file, std::vector<sqlite_log_salt> logs);

  void forget();

private:
  mutable std::mutex mutex_;
  std::optional<sqlite_file_id> file_;
  std::vector<sqlite_log_salt> logs_;
};

/// Watches the file of one connection. Used by one thread at a time.
class sqlite_watch {
public:
  /// `database` must have read from the file at `path` before. `database` and
  /// `shared` must outlive the watch.
  sqlite_watch(const sqlite_database& database,
               std::filesystem::path path,
               sqlite_known_file& shared);

  /// Throws `sqlite_history_lost` if the path leads to another file, or if
  /// anything but a SQLite checkpoint wrote to the file since the last check.
  void check_file();

  /// Returns true if a checkpoint runs or has ended half-way. The recovery of
  /// a log leaves the same numbers. In both cases changes of the file cannot
  /// be judged.
  bool has_open_checkpoint() const;

private:
  // Numbers from the index of the write-ahead log. A checkpoint raises
  // `attempted` before it writes to the file, and `backfilled` when it is done.
  struct log_index {
    std::uint32_t backfilled = 0;
    std::uint32_t attempted = 0;
    sqlite_log_salt salt{};

    bool is_checkpointed() const noexcept { return backfilled != attempted; }

    friend bool operator==(const log_index&, const log_index&) = default;
  };

  struct file_facts {
    sqlite_file_id id;
    std::int64_t size = 0;
    std::int64_t modified = 0; // Nanoseconds since 1970.
  };

  [[noreturn]] void lose(sqlite_history_lost::cause why) const;
  std::vector<sqlite_log_salt> logs() const;
  sqlite3_file* open_file(int which) const;
  std::optional<log_index> read_index() const;
  std::optional<sqlite_log_salt> read_log_header() const;
  file_facts read_facts() const;

  const sqlite_database&
    database_; // Belongs to the owner of the watch; outlives it.
  // The path as configured: a symbolic link may be switched to another file.
  std::filesystem::path path_;
  sqlite_known_file& shared_; // Belongs to the store, which outlives this.
  file_facts known_;
  // Read before `known_`. A checkpoint that starts between the two reads then
  // shows as a difference at the next check.
  std::optional<log_index> known_index_;
};

/// Reads the salts in the header of the write-ahead log beside `file`, if there
/// is one.
std::optional<sqlite_log_salt>
salt_of_log_beside(const std::filesystem::path& file);

} // namespace troupe
