// Sends records to their receivers, on one thread of its own.
//
// Giving a record never waits for a receiver: a full queue drops it and counts
// it. A receiver that does not answer therefore costs records and never time of
// a run.

#pragma once

#include "troupe/telemetry/options.hpp"
#include "troupe/telemetry/records/histogram.hpp"
#include "troupe/telemetry/records/log_record.hpp"
#include "troupe/telemetry/records/span.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

namespace troupe::telemetry {

/// Numbers of records since the start.
struct sender_counts {
  /// Spans and log records that a receiver has accepted.
  std::uint64_t sent = 0;
  /// Spans and log records that no receiver has got: the queue was full, or
  /// their request was refused or given up.
  std::uint64_t dropped = 0;
};

/// Owns the queues and the thread. Thread-safe.
class sender {
public:
  /// Starts the thread. `chosen.environment` is set. Throws `std::system_error`
  /// if there is no thread.
  sender(options chosen, std::vector<instrument> instruments);

  /// Drops the records that are left; `flush` before sends them.
  ~sender();

  sender(const sender&) = delete;
  sender& operator=(const sender&) = delete;

  /// Queues a span or a log record, if they have a receiver.
  void give(span made);
  void give(log_record made);

  /// The histograms, which are sent from time to time.
  histogram_table& histograms() noexcept;

  /// Sends all records and the histograms now, each request once; those that
  /// fail are dropped. Returns true if this ended within `limit`; it goes on
  /// afterwards. Waits in real time.
  bool flush(std::chrono::milliseconds limit);

  sender_counts counts() const;

private:
  struct shared;

  std::shared_ptr<shared> shared_; // Timers hold it weakly.
};

} // namespace troupe::telemetry
