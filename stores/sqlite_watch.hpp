// Whether a connection still reads and writes the file that its path names.
//
// A file can be removed, replaced, truncated or copied over while it is open.
// In write-ahead mode SQLite does not look: commits into a removed file
// succeed. So each transaction compares the file with the last look.

#pragma once

#include "troupe/stores/sqlite_database.hpp"

#include <array>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>

namespace troupe {

/// Identifies one write-ahead log: the salts of its header.
using sqlite_log_salt = std::array<unsigned char, 8>;

/// Thrown when the file is not the one that this process knows any more.
class sqlite_history_lost : public std::exception {
public:
  enum class cause : std::uint8_t {
    removed,     // There is no file under the path.
    replaced,    // Another file is under the path.
    overwritten, // A program that is not SQLite wrote to the file.
    went_back,   // The newest known commit is not in the file.
  };

  sqlite_history_lost(cause why, std::optional<sqlite_log_salt> log)
    : why_(why),
      log_(log) {}

  cause why() const noexcept { return why_; }

  /// Of the write-ahead log that belongs to the lost file.
  const std::optional<sqlite_log_salt>& log() const noexcept { return log_; }

  const char* what() const noexcept override;

private:
  cause why_;
  std::optional<sqlite_log_salt> log_;
};

/// Watches the file of one connection; used by one thread at a time.
class sqlite_watch {
public:
  /// `database` outlives it and has read from the file before.
  explicit sqlite_watch(const sqlite_database& database);

  /// Throws `sqlite_history_lost` when the file is another one, or was written
  /// to by anything but a checkpoint of SQLite since the last look.
  void look();

  /// Of the write-ahead log in use, if it can be told.
  std::optional<sqlite_log_salt> log() const;

private:
  // Of the index of the write-ahead log. A checkpoint raises `attempted`
  // before it writes to the file, and `backfilled` when it is done.
  struct log_index {
    std::uint32_t backfilled = 0;
    std::uint32_t attempted = 0;
    sqlite_log_salt salt{};

    bool is_checkpointed() const noexcept { return backfilled != attempted; }

    friend bool operator==(const log_index&, const log_index&) = default;
  };

  struct file_facts {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    std::int64_t size = 0;
    std::int64_t modified = 0; // Nanoseconds since 1970.
  };

  [[noreturn]] void lose(sqlite_history_lost::cause why) const;
  std::optional<log_index> read_index() const;
  file_facts read_facts() const;

  const sqlite_database& database_; // The owner's, which outlives this.
  std::string path_;
  file_facts known_;
  // Read before `known_`, so that a later checkpoint shows in it.
  std::optional<log_index> known_index_;
};

/// The salts in the header of the write-ahead log beside `file`, if there is
/// one.
std::optional<sqlite_log_salt>
salt_of_log_beside(const std::filesystem::path& file);

} // namespace troupe
