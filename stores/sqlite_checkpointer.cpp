#include "troupe/stores/sqlite_checkpointer.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

namespace {

// 32 MiB: more keeps what is hot from being moved twice, less keeps reading
// fast. A warning about less than that needs a look in between.
int frames_due(const sqlite_settings& settings) noexcept {
  return std::min(8'192, warned_frames(settings) / 2);
}

// What the writer moves by itself: some milliseconds.
constexpr int frames_left_max = 512;

// Each pass leaves what came during it.
constexpr int passes_max = 4;

} // namespace

sqlite_checkpointer::sqlite_checkpointer(sqlite_settings settings)
  : settings_(std::move(settings)),
    frames_due_(frames_due(settings_)),
    warning_(settings_),
    thread_([this] { run(); }) {}

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

void sqlite_checkpointer::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return is_due_ || is_stopping_; });
    if (is_stopping_)
      break;
    lock.unlock();
    move_frames();
    lock.lock();
    is_nearly_done_ = true;
    is_due_ = false;
  }
  database_.reset();
}

// A failure shows in the commits, and nothing is lost: the frames stay where
// they are, and are moved when the disk works again.
void sqlite_checkpointer::move_frames() {
  try {
    if (!database_)
      database_.emplace(settings_, sqlite_role::checkpointer);
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
      // Those that came during the pass are in neither.
      held = there - moved;
      const std::lock_guard guard(mutex_);
      if (is_stopping_ || frames_ - moved <= frames_left_max)
        break;
    }
    warning_.note(held);
  } catch (const error&) {
    database_.reset();
  }
}

} // namespace troupe
