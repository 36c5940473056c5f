// Folds the log into the state rows, in the background and in large batches.
//
// A commit only adds to the log: one that touched the row of every key would be
// several times as slow. A load replays what is not folded yet, so all of this
// may lag, or be done by another process.

#pragma once

#include "troupe/stores/postgres_pool.hpp"

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace troupe {

class postgres_folder {
public:
  /// The pool must outlive it.
  explicit postgres_folder(postgres_pool& pool);
  postgres_folder(const postgres_folder&) = delete;
  postgres_folder& operator=(const postgres_folder&) = delete;
  ~postgres_folder();

  /// Rows were added to the log. Waits while too many are not folded.
  void added(std::size_t rows);

  /// Folds all that is committed when it is called. Safe from any thread.
  result<void> fold();

  /// Ends the thread.
  void stop();

private:
  void work();

  postgres_pool& pool_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t waiting_ = 0; ///< Rows that are not folded, as far as known.
  bool is_failing_ = false;
  bool is_stopping_ = false;
  std::thread thread_;
};

} // namespace troupe
