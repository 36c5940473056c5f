// The change of one figure between two sets of load tests.
//
// A figure varies from run to run by a factor, not by an amount. All statistics
// are therefore made on logarithms: means are geometric, a change is a ratio,
// and its confidence interval follows Welch's t test.

#pragma once

#include "troupe/load/pages/measured_run.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::load {

struct comparison_options {
  /// Confidence of the intervals, between 0 and 1 (exclusive). A higher
  /// confidence makes them wider.
  double confidence = 0.95;
  /// Accepted relative loss, at least 0.
  double margin = 0.05;
};

enum class finding : std::uint8_t {
  same,    ///< Within the margin, or possibly by chance.
  better,  ///< By more than the margin.
  worse,   ///< By more than the margin.
  unknown, ///< There is no change to judge.
};

/// `"same"`, `"better"`, `"worse"`, `"unknown"`.
std::string_view to_string(finding found) noexcept;

/// An interval of relative changes.
struct change_interval {
  double low = 0;
  double high = 0;

  friend bool operator==(const change_interval&, const change_interval&)
    = default;
};

/// The comparison of one figure.
struct figure_change {
  /// `rate`, `p50`, `p90`, `p99`, `p99.9`, `max`, `mean`.
  std::string name;
  /// True if the figure decides: `rate`, `p50` and `p99` do; others are only
  /// shown.
  bool gated = false;
  /// Geometric means, in appends per second or nanoseconds. 0 if any run has 0.
  double before = 0;
  double after = 0;
  /// `after / before - 1`; unset if any run has 0.
  std::optional<double> change;
  /// Unset without a change, or if a side has a single run.
  std::optional<change_interval> interval;
  finding found = finding::unknown;
};

/// Returns `worse` for an increase by more than `margin`, `better` for a
/// decrease by more than it.
finding judge(double worsening, double margin);

/// Compares one figure of two sets of runs, none of which is empty.
figure_change compare_figure(const measured_figure& of,
                             const std::vector<measured_run>& before,
                             const std::vector<measured_run>& after,
                             const comparison_options& chosen);

} // namespace troupe::load
