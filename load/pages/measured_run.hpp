// The figures of a load test, read from its report.

#pragma once

#include "troupe/core/error.hpp"
#include "troupe/core/json.hpp"
#include "troupe/load/histogram.hpp"

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace troupe::load {

/// The figures of one load test that are compared. All numbers are finite and
/// at least 0.
struct measured_run {
  double rate = 0; ///< Appends per second.
  /// Response times.
  fractional_nanoseconds p50{};
  fractional_nanoseconds p90{};
  fractional_nanoseconds p99{};
  fractional_nanoseconds p99_9{};
  fractional_nanoseconds max{};
  fractional_nanoseconds mean{};
  std::uint64_t stored = 0;
  std::uint64_t failed = 0; ///< Failures of all codes.
  /// The report has a verdict, and it holds.
  bool holds = false;
  /// The test was ended early.
  bool interrupted = false;
  json settings;
  /// Objects, or null if the report has none.
  json machine;
  json versions;
};

/// A figure of a run.
struct measured_figure {
  std::string_view name;
  /// Path in a report.
  std::string_view path;
  /// Null for the rate, the only figure that is better when it is higher.
  fractional_nanoseconds measured_run::*time;
  /// True if the figure decides; others are only shown.
  bool gated;
};

inline constexpr std::array measured_figures = {
  measured_figure{"rate", "appendsPerSecond", nullptr, true},
  measured_figure{"p50", "response.p50", &measured_run::p50, true},
  measured_figure{"p90", "response.p90", &measured_run::p90, false},
  measured_figure{"p99", "response.p99", &measured_run::p99, true},
  measured_figure{"p99.9", "response.p99_9", &measured_run::p99_9, false},
  measured_figure{"max", "response.max", &measured_run::max, false},
  measured_figure{"mean", "response.mean", &measured_run::mean, false},
};

/// Reads one or more reports as `to_json(const outcome&)` makes them.
///
/// Each report is one line, or begins with a line that starts with `{`; a
/// single report may have any layout. Fails with `errc::invalid_argument` and
/// the line number, for text that is not such a report and for numbers that
/// cannot have been measured.
result<std::vector<measured_run>> read_runs(std::string_view text);

} // namespace troupe::load
