// A write-ahead log that a reader holds back: a warning, and a bound.
//
// The log starts anew once all of it is moved and no connection reads from it.
// A connection that goes on reading an old state, for example of a stopped
// program, keeps it growing with each commit.

#pragma once

#include "troupe/stores/sqlite_database.hpp"

#include <cstdint>
#include <functional>
#include <string>

namespace troupe {

/// Frames of the log, of one page each, that a reader may hold back before a
/// warning says so.
int warned_frames(const sqlite_settings& settings) noexcept;

/// Warns once when a reader holds back much of the log, and again after it has
/// been let go. For one thread.
class sqlite_log_warning {
public:
  explicit sqlite_log_warning(const sqlite_settings& settings);

  /// After a checkpoint: the frames that it could not move.
  void note(int held_frames);

private:
  std::string file_;
  std::function<void(const std::string&)> on_warning_;
  const int frames_max_;
  bool is_told_ = false;
};

/// Refuses commits while the log is larger than `store_options::log_bytes_max`
/// and cannot start anew. For one thread.
class sqlite_log_bound {
public:
  explicit sqlite_log_bound(const sqlite_settings& settings);

  /// After a commit: the frames in the log; 0 if the connection has not
  /// written yet.
  void note(int frames) noexcept {
    if (frames > 0)
      frames_ = frames;
  }

  /// Whether the log has reached the bound.
  bool is_reached() const noexcept;

  /// Lets the log start anew with the next commit, waiting a moment for
  /// readers. Throws `errc::store_failed` if one of them stays. Requires that
  /// `writer` has no transaction.
  void make_room(sqlite_database& writer);

private:
  const sqlite_settings& settings_; // The store's, which outlives this.
  int frames_ = 0;
  bool is_held_ = false; // The last call has thrown.
};

} // namespace troupe
