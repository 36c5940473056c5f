// Handles the size of a write-ahead log: space that is reserved ahead of the
// commits, and a warning and a limit for a log that a reader keeps from
// restarting.
//
// The log restarts once all of its frames are copied to the database file and
// no connection reads from it. A connection that keeps reading an old state,
// for example of a stopped program, makes it grow with each commit.

#pragma once

#include "troupe/stores/sqlite/database.hpp"

#include <cstdint>
#include <functional>
#include <string>

namespace troupe {

/// Reserves space in the file of the log ahead of the commits. A sync of a file
/// that grows takes about twice as long as one of a file that does not. Used by
/// one thread.
class sqlite_log_space {
public:
  explicit sqlite_log_space(const sqlite_settings& settings) noexcept;

  /// Extends the file when the log has grown by a MiB, up to `log_bytes_max`.
  /// `frames` is the number of frames in the log; 0 if the connection has not
  /// written yet. On a failure (disk full), the file grows with the commits.
  ///
  /// Requires that `writer` is in a transaction that writes: SQLite extends a
  /// file by writing to its end, where another process could have put frames.
  void extend(const sqlite_database& writer, int frames) noexcept;

private:
  const std::uint64_t bytes_max_; // 0: nothing is reserved.
  std::uint64_t step_ = 0;        // Steps for which space is reserved.
};

/// Number of frames (one page each) that a reader may hold back before a
/// warning.
int warned_frames(const sqlite_settings& settings) noexcept;

/// Warns once when a reader holds back much of the log. Warns again only after
/// that reader has ended its read. Used by one thread.
class sqlite_log_warning {
public:
  explicit sqlite_log_warning(const sqlite_settings& settings);

  /// Takes the number of frames that a checkpoint could not copy.
  void note(int held_frames);

private:
  std::string file_;
  std::function<void(const std::string&)> on_warning_;
  const int frames_max_;
  bool is_told_ = false;
};

/// Refuses commits while the log is larger than `store_options::log_bytes_max`
/// and cannot restart. Used by one thread.
class sqlite_log_bound {
public:
  explicit sqlite_log_bound(const sqlite_settings& settings);

  /// Takes the number of frames in the log after a commit; 0 if the connection
  /// has not written yet.
  void note(int frames) noexcept {
    if (frames > 0)
      frames_ = frames;
  }

  /// Returns true if the log has reached the limit.
  bool is_reached() const noexcept;

  /// Makes the log restart with the next commit; waits a moment for readers.
  /// Throws `errc::store_failed` if a reader stays. `writer` must have no open
  /// transaction.
  void make_room(sqlite_database& writer);

private:
  const sqlite_settings&
    settings_; // Belongs to the store, which outlives this.
  int frames_ = 0;
  bool is_held_ = false; // True after a failed `make_room`.
};

} // namespace troupe
