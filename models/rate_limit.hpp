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

  /// Calls `go` once the request may be sent, which may be at once, on this
  /// thread or on one of the environment. `tokens` is what it is expected to
  /// use; more than a minute's worth counts as that.
  void enter(double tokens, std::function<void()> go);

  /// What a request has used beyond what was expected, or less.
  void settle(double expected, double used);

private:
  struct waiting {
    double tokens;
    std::function<void()> go;
  };

  // A bucket that fills up by itself. May be in debt.
  struct bucket {
    double capacity = 0;
    double level = 0;
  };

  void refill();
  std::optional<std::chrono::nanoseconds> wait_for(double tokens) const;
  void take(double tokens);
  std::deque<std::function<void()>> admit();
  void serve();

  const rate_limit_options limits_;
  const std::shared_ptr<troupe::environment> time_;
  std::mutex mutex_;
  bucket requests_;
  bucket tokens_;
  timestamp filled_at_{};
  std::deque<waiting> queue_;
  bool timer_runs_ = false;
};

} // namespace troupe
