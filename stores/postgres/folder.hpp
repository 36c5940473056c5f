// Folds the log into the state tables, in large batches on its own thread.
//
// A commit only appends to the log; writing the row of every key would make it
// several times as slow. A load replays the rows that are not folded, so
// folding may lag or be done by another process.

#pragma once

#include "troupe/stores/postgres/pool.hpp"

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace troupe {

/// Folds all rows of the log within the transaction of the caller, which must
/// hold the fold lock. The statements of the transaction may then take longer.
result<void> fold_in_transaction(postgres_connection& connection);

class postgres_folder {
public:
  /// `pool` must outlive the folder.
  explicit postgres_folder(postgres_pool& pool);
  postgres_folder(const postgres_folder&) = delete;
  postgres_folder& operator=(const postgres_folder&) = delete;
  ~postgres_folder();

  /// Tells that a commit has added rows. Blocks while too many rows are not
  /// folded.
  void added(std::size_t rows);

  /// Folds all rows that are committed at the time of the call. Safe from any
  /// thread.
  result<void> fold();

  /// Stops the thread.
  void stop();

private:
  void work();

  postgres_pool& pool_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t waiting_ = 0; ///< Estimated number of rows that are not folded.
  bool is_failing_ = false;
  bool is_stopping_ = false;
  std::thread thread_;
};

} // namespace troupe
