// Appends of one writer that are under way at the same time, passed on in the
// order in which they were started.

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
    /// Gets stored events, in order, each once it is durable, on a thread of
    /// the window's; partial events, which are not stored, are left out. What
    /// it fails with ends the window.
    std::function<result<void>(const std::vector<event_ptr>&)> on_stored;
    /// Called with the first failure, on the same thread.
    std::function<void()> on_failure;
  };

  /// `what` names an event in reasons, in front of its number: `"line"`.
  append_window(session_writer writer, std::string what, hooks told);

  /// Waits for what is under way.
  ~append_window();
  append_window(const append_window&) = delete;
  append_window& operator=(const append_window&) = delete;

  /// Starts to append `said`, of about `bytes`, and waits first while too much
  /// is under way. Fails with the first failure, without appending.
  result<void> push(event said, std::size_t number, std::size_t bytes);

  /// Waits until everything under way is answered and passed on. Fails with the
  /// first failure.
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
  // The position of the front of the queue among all events pushed.
  std::uint64_t front_ = 0;
  std::size_t bytes_ = 0;
  // From the first failure on, which is passed on in its turn.
  bool failing_ = false;
  std::optional<error> failure_;
  bool ended_ = false;
  std::thread passing_on_;
};

} // namespace troupe::cli
