// Runs many appends of one writer at the same time, and passes the stored
// events on in the order in which the appends were started.

#pragma once

#include "troupe/runtime/session_writer.hpp"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace troupe::cli {

class append_window {
public:
  struct hooks {
    /// Receives stored events in order, when they are durable, on a thread of
    /// the window. Partial events are left out, since they are not stored. A
    /// failure ends the window, and `on_stored` is not called again.
    std::function<result<void>(const std::vector<event_ptr>&)> on_stored;
    /// Receives the first failure, on the same thread.
    std::function<void()> on_failure;
  };

  /// `what` names an event in error messages, before its number: `"line"`.
  append_window(session_writer writer, std::string what, hooks told);

  /// Waits for appends under way.
  ~append_window();
  append_window(const append_window&) = delete;
  append_window& operator=(const append_window&) = delete;

  /// Starts to append `said`, of about `bytes` bytes. Waits first if the window
  /// is full. After a failure, appends nothing and returns the first failure.
  result<void> push(event said, std::size_t number, std::size_t bytes);

  /// Waits until all appends are answered and passed on. Fails with the first
  /// failure.
  result<void> drain();

  static constexpr std::size_t count_max = 4'096;
  static constexpr std::size_t bytes_max = std::size_t{32} << 20U;

private:
  struct under_way {
    std::size_t number;
    std::size_t bytes;
    std::optional<result<event_ptr>> answer;
  };

  void answer(std::uint64_t position, result<event_ptr> given);
  void keep_passing_on();

  session_writer writer_;
  const std::string what_;
  const hooks hooks_;

  std::mutex mutex_;
  std::condition_variable answered_;
  std::condition_variable passed_on_;
  std::deque<under_way> queue_;
  // Position of the queue's front among all pushed events.
  std::uint64_t front_ = 0;
  std::size_t bytes_ = 0;
  // Set at the first failure; `failure_` follows when it is passed on in order.
  bool failing_ = false;
  std::optional<error> failure_;
  bool ended_ = false;
  std::thread passing_on_;
};

} // namespace troupe::cli
