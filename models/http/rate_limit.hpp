// Limits the requests and tokens per minute of a model.

#pragma once

#include "troupe/core/environment.hpp"
#include "troupe/models/http_options.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

namespace troupe {

/// Lets requests pass in the order of arrival. A full minute's worth may pass
/// at once after a pause; then requests pass evenly. Share one object between
/// all callers of the same key. Thread-safe.
class rate_limit : public std::enable_shared_from_this<rate_limit> {
public:
  rate_limit(rate_limit_options limits,
             std::shared_ptr<troupe::environment> time);

  struct waiter {
    /// Expected number of tokens. A value above one minute's worth counts as
    /// that.
    double tokens = 0;
    /// Sends the request. Called at once on the caller's thread, or later on
    /// the thread of another `enter` or `correct` or of the environment. Must
    /// not throw.
    std::function<void()> go;
    /// Returns true if the request was given up. It then uses nothing, and `go`
    /// is not called. Must not call `enter` or `correct`.
    std::function<bool()> is_over = [] { return false; };
  };

  /// Queues a request. Returns false, and calls nothing, if 100,000 requests
  /// wait already.
  bool enter(waiter wanted);

  /// Replaces the expected number of tokens of a request by the actual one. At
  /// most ten minutes' worth count, because servers may report anything.
  void correct(double expected, double used);

private:
  // Fills up over time. The level may be negative.
  struct bucket {
    double capacity = 0;
    double level = 0;
  };

  void refill();
  std::optional<std::chrono::nanoseconds> wait_for(double tokens) const;
  void take(double tokens);

  // Requests to handle after the lock is released.
  struct admitted {
    std::deque<waiter> going;
    std::deque<waiter> given_up;
  };

  admitted admit();
  void serve();

  const rate_limit_options limits_;
  const std::shared_ptr<troupe::environment> time_;
  std::mutex mutex_;
  bucket requests_;
  bucket tokens_;
  timestamp filled_at_{};
  std::deque<waiter> queue_;
  bool timer_runs_ = false;
};

} // namespace troupe
