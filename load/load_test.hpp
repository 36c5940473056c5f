// A load test: callers append to sessions, each as fast as it is answered or
// all together at a given rate. Afterwards the answers are compared with the
// stored state.

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

/// @namespace troupe::load
/// Load tests, experiments and timelines; link `troupe::load`.

namespace troupe::load {

/// The largest batch size that is counted separately.
inline constexpr std::size_t batch_max = 16'384;

/// One second of a test.
struct interval {
  /// Time since the start, at the end of this row. The last row may be shorter
  /// than a second.
  std::chrono::milliseconds at{};
  std::uint64_t offered = 0;   ///< Begun in this second.
  std::uint64_t stored = 0;    ///< Acknowledged in this second.
  std::uint64_t failed = 0;    ///< Answered with an error in this second.
  std::uint64_t in_flight = 0; ///< At its end, as is `memory`.
  std::uint64_t memory = 0;    ///< Resident bytes.
  /// Response times of appends that were stored in this second; 0 without any.
  std::chrono::nanoseconds p50{};
  std::chrono::nanoseconds p99{}; ///< 99th percentile of the response times.
  std::chrono::nanoseconds max{}; ///< The longest response time.
};

/// State of a test that is under way. Only `checked` and `to_check` are set
/// during the final check.
struct progress {
  /// The second that has just ended.
  interval newest;
  std::uint64_t stored = 0; ///< Appends acknowledged since the start.
  std::uint64_t failed = 0; ///< Appends answered with an error since the start.
  std::chrono::milliseconds elapsed{}; ///< Time since the start of the appends.
  /// Estimated remaining time; unset while unknown.
  std::optional<std::chrono::milliseconds> left;
  /// Number of sessions that the final check has inspected, of `to_check`.
  std::size_t checked = 0;
  /// Number of sessions to inspect; 0 before the final check.
  std::size_t to_check = 0;
};

/// Called once a second, on one thread at a time, and on the calling thread
/// during the final check. Must not throw.
using watcher = std::function<void(const progress&)>;

/// A condition on the results (`--expect`), and whether it holds.
struct judged_expectation {
  std::string text;    ///< Such as `p99<5ms`.
  bool holds = false;  ///< The results meet the condition.
  std::string finding; ///< If it does not hold: the measured value.
};

/// Results of a load test.
struct outcome {
  /// The settings. A store of the caller's own is replaced by its name, since
  /// it is closed by then.
  settings chosen;
  /// The machine that ran the test.
  machine made_on;
  /// Versions of the software that ran the test.
  versions made_with;
  /// Time of the start by the runtime's clock.
  timestamp started{};
  /// Part of the apps' names, `load-RUN-N`.
  std::string run;
  /// Time from the start of the appends until the last answer. With open
  /// arrival and a time limit it is at least that limit, unless the test ended
  /// early.
  std::chrono::nanoseconds elapsed{};
  /// The test was ended early.
  bool interrupted = false;
  std::uint64_t sent = 0;   ///< Appends begun.
  std::uint64_t stored = 0; ///< Appends acknowledged.
  std::uint64_t reads = 0;  ///< Reads that succeeded.
  /// Number of failed appends, by error code (`to_string(errc)`).
  std::map<std::string, std::uint64_t> failed;
  /// Number of failed reads, by error code.
  std::map<std::string, std::uint64_t> failed_reads;
  /// Time from the start of the appends until no more were begun. With closed
  /// arrival it equals `elapsed`.
  std::chrono::nanoseconds offering{};
  /// With open arrival: time from when an append was due until it was begun. It
  /// shows how late the test itself was. Empty with closed arrival.
  histogram lateness;
  /// Time from when a stored append was due until its answer. With closed
  /// arrival an append is due when it is sent.
  histogram response;
  /// Time from the call of a stored append until its answer.
  histogram service;
  /// Time from the call of a successful read until its answer.
  histogram reading;
  /// Service times of stored appends, by index in `settings::mix`.
  std::vector<histogram> by_entry;
  /// Number of commits by their number of changes. Over a store a commit is one
  /// transaction; with `memory:` it is the batch that one session decides
  /// together. Larger commits count as `batch_max`.
  std::map<std::size_t, std::uint64_t> batches;
  /// Values of each second. The last row holds the rest after the last full
  /// second; it is left out if nothing was answered then.
  std::vector<interval> seconds;
  /// CPU time of all threads of the process while the appends ran.
  std::chrono::nanoseconds cpu{};
  /// Mean time in which the test makes one append and records its answer,
  /// without the runtime. Measured before the test.
  std::chrono::nanoseconds own_cost{};
  /// Resident bytes of the process after the last answer.
  std::uint64_t memory = 0;
  /// Unset if the store could not be read any more; `unchecked` is the reason.
  std::optional<load::verdict> found;
  /// Error of the final check; empty if `found` is set.
  std::string unchecked;
  /// Error of closing the store, or empty.
  std::string closing;
  /// Conditions on these results, set by the caller of the test.
  std::vector<judged_expectation> expected;

  /// Returns true if something was stored and the verdict holds.
  bool holds() const noexcept { return stored > 0 && found && found->holds(); }
};

/// Runs a test on a runtime of its own, closes its store, opens it again and
/// inspects it.
///
/// Blocks until the inspection has ended. When `stop` is requested after the
/// first append, ends early with all results so far. `watch` may be empty.
///
/// Fails as `check_settings` and `runtime::open` do, with the error of the
/// first session that could not be created, and with `errc::cancelled` if
/// `stop` was requested before the first append. Failed appends and reads, a
/// failed inspection and a store that cannot be closed are results:
/// `outcome::failed`, `failed_reads`, `unchecked` and `closing`. Throws an
/// exception of the test itself, such as `std::bad_alloc`.
result<outcome> run_load_test(const settings& chosen,
                              const watcher& watch,
                              const std::stop_token& stop);

} // namespace troupe::load
