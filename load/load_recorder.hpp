// What many callers record at the same time: latencies and failures, in stripes
// that seldom meet.

#pragma once

#include "troupe/core/error.hpp"
#include "troupe/load/histogram.hpp"
#include "troupe/load/workload.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace troupe::load {

struct interval;
struct outcome;

/// Thread-safe.
class recorder {
public:
  explicit recorder(std::size_t mix_entries);

  /// An append was stored; `entries` of the mix are told apart.
  void stored(std::uint32_t caller,
              const planned_append& done,
              std::chrono::nanoseconds response,
              std::chrono::nanoseconds service);
  void failed(std::uint32_t caller, errc code);
  void read(std::uint32_t reader, std::chrono::nanoseconds service);

  /// What came since the last time.
  interval take_interval();

  /// Everything. Once nothing is recorded any more.
  void finish(outcome& into);

private:
  struct stripe {
    std::mutex mutex;
    histogram recent; // Response times since the last interval.
    histogram response;
    histogram service;
    histogram reading;
    std::vector<histogram> by_entry;
    std::map<errc, std::uint64_t> failures;
    std::uint64_t recent_failures = 0;
  };

  stripe& stripe_of(std::uint32_t caller) {
    return *stripes_[caller % stripes_.size()];
  }

  std::array<std::unique_ptr<stripe>, 8> stripes_;
};

} // namespace troupe::load
