// Limits the number of requests of each caller.

#pragma once

#include <chrono>
#include <cstddef>
#include <mutex>
#include <string>
#include <unordered_map>

namespace troupe::serving {

/// A bucket for each caller, which fills with the rate and holds one second of
/// it. Thread-safe.
class request_rate {
public:
  using clock = std::chrono::steady_clock;

  /// `per_second` of 0 means no limit.
  explicit request_rate(double per_second) : per_second_(per_second) {}

  /// Counts a request. Returns false if the caller has sent too many.
  bool admit(const std::string& who, clock::time_point now);

private:
  struct bucket {
    double left = 0;
    clock::time_point filled;
  };

  double room() const noexcept;
  void forget(clock::time_point now);

  const double per_second_;
  std::mutex mutex_;
  std::unordered_map<std::string, bucket> buckets_;
  clock::time_point forgot_{};
};

} // namespace troupe::serving
