// What many callers record at the same time: latencies and failures, in stripes
// that seldom meet.

#pragma once

#include "troupe/core/error.hpp"
#include "troupe/load/histogram.hpp"
#include "troupe/load/workload.hpp"

#include <algorithm>
#include <array>
#include <atomic>
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
  void failed_read(std::uint32_t reader, errc code);

  /// So many events were committed together.
  void committed(std::size_t events) noexcept {
    batches_[std::min(events, batches_.size() - 1)].fetch_add(
      1, std::memory_order_relaxed);
  }

  /// What was committed so far was not of the test.
  void forget_batches() noexcept {
    for (auto& each : batches_)
      each.store(0, std::memory_order_relaxed);
  }

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
    std::map<errc, std::uint64_t> failed_reads;
    std::uint64_t recent_failures = 0;
  };

  stripe& stripe_of(std::uint32_t caller) {
    return *stripes_[caller % stripes_.size()];
  }

  std::array<std::unique_ptr<stripe>, 8> stripes_;
  std::vector<std::atomic<std::uint64_t>> batches_; // By events.
};

} // namespace troupe::load
