// How many requests and tokens a minute a model may be asked for.

#pragma once

#include "troupe/core/environment.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

namespace troupe {

struct rate_limit_options {
  /// Unset: no limit.
  std::optional<double> requests_per_minute = {};
  std::optional<double> tokens_per_minute = {};

  friend bool operator==(const rate_limit_options&, const rate_limit_options&)
    = default;
};

/// Lets requests through in the order in which they come, as fast as the limits
/// say: a minute's worth at once when nothing came before, then evenly. Shared
/// by all who ask under the same key. Thread-safe.
class rate_limit : public std::enable_shared_from_this<rate_limit> {
public:
  rate_limit(rate_limit_options limits,
             std::shared_ptr<troupe::environment> time);

  struct place {
    /// What the request is expected to use; more than a minute's worth counts
    /// as that.
    double tokens = 0;
    /// Sends the request, which may be at once, on this thread, or on another
    /// that enters or settles, or on one of the environment. Must not throw.
    std::function<void()> go;
    /// Whether it has been given up: then it takes nothing, and `go` is not
    /// called. Must not enter or settle.
    std::function<bool()> is_over = [] { return false; };
  };

  /// False, and nothing is called, if 100,000 wait already.
  bool enter(place wanted);

  /// What a request has used in place of what was expected. Servers are not to
  /// be trusted with it: counts up to ten minutes' worth.
  void settle(double expected, double used);

private:
  // A bucket that fills up by itself. May be in debt.
  struct bucket {
    double capacity = 0;
    double level = 0;
  };

  void refill();
  std::optional<std::chrono::nanoseconds> wait_for(double tokens) const;
  void take(double tokens);

  // Both for when the lock is gone.
  struct admitted {
    std::deque<place> going;
    std::deque<place> given_up;
  };

  admitted admit();
  void serve();

  const rate_limit_options limits_;
  const std::shared_ptr<troupe::environment> time_;
  std::mutex mutex_;
  bucket requests_;
  bucket tokens_;
  timestamp filled_at_{};
  std::deque<place> queue_;
  bool timer_runs_ = false;
};

} // namespace troupe
