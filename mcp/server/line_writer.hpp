// Writes messages to a file descriptor, one in each line, on a thread of its
// own. Callers never wait for the reader of the descriptor.

#pragma once

#include "troupe/core/json.hpp"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>

namespace troupe::mcp {

/// Thread-safe.
class line_writer {
public:
  /// Above this number of bytes the queue is full.
  static constexpr std::size_t queue_bytes_max = std::size_t{1} << 20U;

  /// Writes to `target`, which outlives this. Calls `on_broken` once, on the
  /// thread of this, if the reader is gone or writing fails; it must not
  /// block.
  line_writer(int target, std::function<void()> on_broken);

  /// Drops messages that were not written.
  ~line_writer();
  line_writer(const line_writer&) = delete;
  line_writer& operator=(const line_writer&) = delete;

  /// Puts the message into the queue. It must have passed `check_json`.
  void write(const json& message);

  /// The same, but drops the message if the queue is full.
  void write_if_room(const json& message);

  /// Waits until the queue is not full. Returns false if the writer is broken,
  /// or a stop was requested.
  bool wait_for_room(const std::stop_token& stop);

  /// Waits until all is written, the time has come, or a stop was requested.
  void finish(std::chrono::steady_clock::time_point until,
              const std::stop_token& stop);

  /// Returns true if nothing more can be written.
  bool is_broken() const;

private:
  void put(std::string line, bool only_if_room);
  void work();
  /// Returns false if the writer is broken or ends.
  bool write_all(std::string_view text);

  const int target_;
  const int wake_; // Readable when the writer ends.
  const std::function<void()> on_broken_;
  mutable std::mutex mutex_; // Guards the next four.
  std::condition_variable_any changed_;
  std::deque<std::string> lines_; // The first one is being written.
  std::size_t bytes_ = 0;
  bool ends_ = false;
  bool broken_ = false;
  std::thread thread_;
};

} // namespace troupe::mcp
