// Moves the write-ahead log into the database file beside the commits, on a
// thread of its own.

#pragma once

#include "troupe/stores/sqlite_log_bound.hpp"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

namespace troupe {

class sqlite_checkpointer {
public:
  explicit sqlite_checkpointer(sqlite_settings settings);
  sqlite_checkpointer(const sqlite_checkpointer&) = delete;
  sqlite_checkpointer& operator=(const sqlite_checkpointer&) = delete;
  ~sqlite_checkpointer();

  /// What the writer tells after each commit: how many frames the write-ahead
  /// log holds. True once so few of them are left to move that the writer
  /// should do that itself: the log starts anew only at a moment in which
  /// nothing is left, and beside a busy writer that never comes.
  bool note(int frames);

private:
  void run();
  void move_frames();

  sqlite_settings settings_;
  const int frames_due_;
  sqlite_log_warning warning_; // The thread's own.
  std::mutex mutex_;
  std::condition_variable changed_;
  int frames_ = 0;
  bool is_due_ = false;
  bool is_nearly_done_ = false;
  bool is_stopping_ = false;
  std::optional<sqlite_database> database_; // The thread's own.
  std::thread thread_;
};

} // namespace troupe
