// A load test: callers append to sessions as fast as they are answered, or as
// often as a rate says, and what they were told is held against what is there.

#pragma once

#include "troupe/load/histogram.hpp"
#include "troupe/load/machine.hpp"
#include "troupe/load/verdict.hpp"
#include "troupe/load/workload.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace troupe::load {

/// The largest batch that is told from larger ones.
inline constexpr std::size_t batch_max = 16'384;

/// One second of a test.
struct interval {
  /// Since the start, at its end.
  std::chrono::milliseconds at{};
  std::uint64_t offered = 0; ///< Begun in it.
  std::uint64_t stored = 0;
  std::uint64_t failed = 0;
  std::uint64_t in_flight = 0; ///< At its end, like `memory`.
  std::uint64_t memory = 0;    ///< Bytes resident.
  /// Response times of those stored in it; 0 if there are none.
  std::chrono::nanoseconds p50{};
  std::chrono::nanoseconds p99{};
  std::chrono::nanoseconds max{};
};

struct progress {
  interval newest;
  std::uint64_t stored = 0;
  std::uint64_t failed = 0;
  std::chrono::milliseconds elapsed{};
  /// Nothing while it cannot be told.
  std::optional<std::chrono::milliseconds> left;
  /// Sessions that have been checked, once the test is over; out of so many.
  std::size_t checked = 0;
  std::size_t to_check = 0;
};

/// Told once a second, on one thread at a time.
using watcher = std::function<void(const progress&)>;

struct outcome {
  settings chosen;
  machine made_on;
  versions made_with;
  timestamp started{};
  /// The apps of the test are called `load-RUN-N`.
  std::string run;
  std::chrono::nanoseconds elapsed{};
  /// It was told to end early.
  bool interrupted = false;
  std::uint64_t sent = 0;
  std::uint64_t stored = 0;
  std::uint64_t reads = 0;
  /// By the name of the error code.
  std::map<std::string, std::uint64_t> failed;
  std::map<std::string, std::uint64_t> failed_reads;
  /// With open arrival: until the last append was begun, and how late each was
  /// begun after it was due, which is the tool's fault.
  std::chrono::nanoseconds offering{};
  histogram lateness;
  /// From the moment an append was due until it was answered; of those stored.
  histogram response;
  /// From the call until the answer.
  histogram service;
  histogram reading;
  /// By entry of the mix: service times.
  std::vector<histogram> by_entry;
  /// How many commits had so many events (a session's, or over a store those
  /// of a transaction); what has more than `batch_max` counts there.
  std::map<std::size_t, std::uint64_t> batches;
  std::vector<interval> seconds;
  /// Of all threads, while it ran.
  std::chrono::nanoseconds cpu{};
  /// What the tool itself spends on one append: making it and recording it.
  std::chrono::nanoseconds own_cost{};
  /// Bytes resident at the end.
  std::uint64_t memory = 0;
  /// Nothing if the store could not be read any more; then `unchecked` says
  /// why.
  std::optional<load::verdict> found;
  std::string unchecked;
  /// What went wrong when the store was closed, or empty.
  std::string closing;

  /// Whether it says anything: something was stored, and all of it holds.
  bool holds() const noexcept { return stored > 0 && found && found->holds(); }
};

/// Runs a test on a runtime of its own, then closes its store, opens it again
/// and looks at what is there.
///
/// `chosen` has to pass `check_settings`. Ends early, with all that ran, when
/// it is told to stop. Fails with what opening the store or making the sessions
/// failed with.
result<outcome> run_load_test(const settings& chosen,
                              const watcher& watch,
                              const std::stop_token& stop);

} // namespace troupe::load
