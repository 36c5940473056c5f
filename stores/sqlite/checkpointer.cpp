#include "troupe/stores/sqlite/checkpointer.hpp"

#include "troupe/core/support/low_memory.hpp"

#include <algorithm>
#include <exception>
#include <utility>

namespace troupe {

// The log restarts, and so stops growing, only if a checkpoint finds nothing
// left to copy. A passive checkpoint never waits for a writer or a reader. So
// this thread copies until few frames are left, and leaves the last ones to the
// writer, the only thread that can prevent new ones.

namespace {

// 32 MiB. A larger value copies hot pages fewer times; a smaller one keeps
// reads fast. It stays below the warning limit, so that a checkpoint runs
// before the warning.
int frames_due(const sqlite_settings& settings) noexcept {
  return std::min(8'192, warned_frames(settings) / 2);
}

// The writer copies this many frames itself, in some milliseconds.
constexpr int frames_left_max = 512;

// Frames that were written during a pass are left for the next one.
constexpr int passes_max = 4;

} // namespace

sqlite_checkpointer::sqlite_checkpointer(sqlite_settings settings,
                                         const sqlite_known_file& file)
  : settings_(std::move(settings)),
    file_(file),
    frames_due_(frames_due(settings_)),
    warning_(settings_),
    thread_([this] { run_thread([this] { run(); }); }) {}

sqlite_checkpointer::~sqlite_checkpointer() {
  {
    const std::lock_guard guard(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

bool sqlite_checkpointer::note(int frames) {
  const std::lock_guard guard(mutex_);
  frames_ = frames;
  if (is_nearly_done_) {
    is_nearly_done_ = false;
    return true;
  }
  if (frames >= frames_due_ && !is_due_) {
    is_due_ = true;
    changed_.notify_one();
  }
  return false;
}

void sqlite_checkpointer::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !is_due_; });
}

void sqlite_checkpointer::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return is_due_ || is_stopping_; });
    if (is_stopping_)
      break;
    lock.unlock();
    move_frames();
    lock.lock();
    // Both flags change under one lock: the writer that is woken in `wait` must
    // see that its turn to copy has come.
    is_nearly_done_ = true;
    is_due_ = false;
    changed_.notify_one();
  }
  database_.reset();
}

// Errors are ignored: frames stay in the log, and are copied when the disk or
// the memory is available again. Commits report a lasting failure, and notice a
// replaced file.
void sqlite_checkpointer::move_frames() {
  try {
    if (!database_) {
      // Without this check SQLite could apply a log to the file that has
      // replaced its own.
      file_.expect_at(settings_.file);
      database_.emplace(settings_, sqlite_role::checkpointer);
    }
    int held = 0;
    for (int pass = 0; pass < passes_max; ++pass) {
      int there = 0;
      int moved = 0;
      if (sqlite3_wal_checkpoint_v2(database_->connection(),
                                    nullptr,
                                    SQLITE_CHECKPOINT_PASSIVE,
                                    &there,
                                    &moved)
          != SQLITE_OK) {
        database_.reset();
        return;
      }
      // Frames that were written during the pass are in neither number.
      held = there - moved;
      const std::lock_guard guard(mutex_);
      if (is_stopping_ || frames_ - moved <= frames_left_max)
        break;
    }
    warning_.note(held);
  } catch (const std::exception&) {
    database_.reset();
  }
}

} // namespace troupe
