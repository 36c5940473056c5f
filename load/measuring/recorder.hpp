// Records latencies and failures of many concurrent callers, in stripes with a
// lock each, so that callers seldom wait for each other.

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

/// Collects the values of one test. Thread-safe, except `finish`.
class recorder {
public:
  /// Makes empty histograms for a mix of this many entries.
  explicit recorder(std::size_t mix_entries);

  /// Records a stored append; entries of the mix are counted separately.
  void stored(std::uint32_t caller,
              const planned_append& done,
              std::chrono::nanoseconds response,
              std::chrono::nanoseconds service);
  /// Counts an append that failed with this code.
  void failed(std::uint32_t caller, errc code);
  /// Records a successful read. `service` is the time from the call until the
  /// answer.
  void read(std::uint32_t reader, std::chrono::nanoseconds service);
  /// Counts a read that failed with this code.
  void failed_read(std::uint32_t reader, errc code);

  /// Records a commit of `events` changes.
  void committed(std::size_t events) noexcept {
    batches_[std::min(events, batches_.size() - 1)].fetch_add(
      1, std::memory_order_relaxed);
  }

  /// Drops the commits so far, which were made before the test.
  void forget_batches() noexcept {
    for (auto& each : batches_)
      each.store(0, std::memory_order_relaxed);
  }

  /// Returns the number of stored and failed appends and the response times
  /// since the last call; the other fields are 0.
  interval take_interval();

  /// Writes all values into `into`. Call it once, when nothing is recorded any
  /// more.
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
  std::vector<std::atomic<std::uint64_t>> batches_; // By number of events.
};

} // namespace troupe::load
