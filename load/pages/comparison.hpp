// Compares two sets of load tests, such as those of two commits: changes, their
// confidence intervals, and regressions.

#pragma once

#include "troupe/core/json.hpp"
#include "troupe/load/pages/figure_change.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace troupe::load {

/// Totals over the runs of one side.
struct compared_side {
  std::size_t runs = 0;
  std::size_t holding = 0; ///< Runs whose verdict holds.
  std::size_t empty = 0;   ///< Runs that stored nothing.
  /// Share of all appends of the side, from 0 to 1.
  double failed_share = 0;
};

/// Result of `compare`.
struct comparison {
  comparison_options chosen;
  compared_side before;
  compared_side after;
  std::vector<figure_change> figures;
  /// Texts such as `"rate -12.3 % [-15.0 %, -9.1 %]"`.
  std::vector<std::string> regressions;
  std::vector<std::string> improvements;
  /// Reasons for less certainty, and other differences between the sides.
  std::vector<std::string> notes;

  bool regressed() const noexcept { return !regressions.empty(); }
};

/// Compares runs, at least one on each side.
///
/// Each of these is a regression, and an improvement with the sides swapped.
/// For an improvement, the verdict must hold in every run of `after`.
/// - A gated figure is `worse`: by more than the margin, and its interval, if
///   there is one, does not contain zero change.
/// - A verdict of `after` does not hold.
/// - The share of failed appends rose by more than the margin; `0.05` means
///   five of a hundred appends.
/// - More of the runs of `after` stored nothing, so some figures cannot be
///   compared.
comparison compare(const std::vector<measured_run>& before,
                   const std::vector<measured_run>& after,
                   const comparison_options& chosen);

/// A table, notes and the result. The last line begins with `comparison:
/// regression: ` or `comparison: no regression beyond `.
std::string to_text(const comparison& made);

/// `{"confidence", "margin": number, "regressed": boolean, "before", "after":
/// {"runs", "holding", "empty": integer, "failedShare": number}, "figures":
/// [{"name": text, "gated": boolean, "before", "after": number, "change":
/// number or null, "interval": [low, high] or null, "finding": text}],
/// "regressions", "improvements", "notes": [text]}`.
json to_json(const comparison& made);

} // namespace troupe::load
