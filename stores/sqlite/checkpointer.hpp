// Copies the write-ahead log into the database file on its own thread, so that
// commits do not wait for it.
//
// The log can restart only when every frame is copied. Beside a busy writer
// this thread never catches up completely, so it asks the writer to copy the
// last frames (`note`).

#pragma once

#include "troupe/stores/sqlite/log_bound.hpp"
#include "troupe/stores/sqlite/watch.hpp"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

namespace troupe {

class sqlite_checkpointer {
public:
  /// `file` must outlive the checkpointer.
  sqlite_checkpointer(sqlite_settings settings, const sqlite_known_file& file);
  sqlite_checkpointer(const sqlite_checkpointer&) = delete;
  sqlite_checkpointer& operator=(const sqlite_checkpointer&) = delete;
  ~sqlite_checkpointer();

  /// Tells how many frames the write-ahead log holds; the writer calls it after
  /// each commit. Returns true once after a checkpoint that left only a few
  /// frames. The writer then must copy these itself: the log can restart only
  /// at a moment with none left.
  bool note(int frames);

  /// Waits until this thread runs no checkpoint and none is due. Called by the
  /// thread that calls `note`.
  void wait();

private:
  void run();
  void move_frames();

  sqlite_settings settings_;
  const sqlite_known_file& file_; // Belongs to the store.
  const int frames_due_;
  sqlite_log_warning warning_; // Used only by the thread.
  std::mutex mutex_;
  std::condition_variable changed_;
  int frames_ = 0;
  bool is_due_ = false;
  bool is_nearly_done_ = false;
  bool is_stopping_ = false;
  std::optional<sqlite_database> database_; // Used only by the thread.
  std::thread thread_;
};

} // namespace troupe
