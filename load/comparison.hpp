// Two sets of load tests held against each other, such as those of two commits:
// what changed, how sure that is, and whether it got worse.
//
// A figure varies from run to run by a factor, not by an amount. So all is
// reckoned on logarithms: means are geometric, a change is a ratio, and its
// confidence interval is that of Welch's t test.

#pragma once

#include "troupe/core/error.hpp"
#include "troupe/core/json.hpp"
#include "troupe/load/histogram.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::load {

/// What one load test measured, as far as it is compared.
///
/// None of the numbers is negative, and all are finite.
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
  std::uint64_t failed = 0; ///< With any code.
  /// Whether there is a verdict, and it holds.
  bool holds = false;
  /// It was told to end early.
  bool interrupted = false;
  json settings;
  /// Objects, or null if the report has none.
  json machine;
  json versions;
};

/// Reads reports as `to_json(const outcome&)` makes them, at least one.
///
/// Each is on a line of its own, or begins with a line that begins with `{`; a
/// single one may be laid out in any way. Fails with `errc::invalid_argument`
/// and the line on what is no JSON or no such report, and on numbers that
/// cannot have been measured.
result<std::vector<measured_run>> read_runs(std::string_view text);

struct comparison_options {
  /// Of the intervals: between 0 and 1, and neither. The nearer to 1, the wider
  /// they are.
  double confidence = 0.95;
  /// How much worse, relative to `before`, is accepted; at least 0.
  double margin = 0.05;
};

enum class finding : std::uint8_t {
  same,    ///< Within the margin, or it may as well be chance.
  better,  ///< By more than the margin.
  worse,   ///< By more than the margin.
  unknown, ///< There is no change to judge.
};

/// `"same"`, `"better"`, `"worse"`, `"unknown"`.
std::string_view to_string(finding found) noexcept;

/// From `low` to `high`, as relative changes.
struct change_interval {
  double low = 0;
  double high = 0;

  friend bool operator==(const change_interval&, const change_interval&)
    = default;
};

/// What became of one figure.
struct figure_change {
  /// `rate`, `p50`, `p90`, `p99`, `p99.9`, `max`, `mean`.
  std::string name;
  /// Whether it decides: `rate`, `p50` and `p99` do, the others are shown only.
  bool gated = false;
  /// Geometric means, appends per second or nanoseconds; 0 if it is 0 in a run.
  double before = 0;
  double after = 0;
  /// `after / before - 1`; nothing if it is 0 in a run.
  std::optional<double> change;
  /// Nothing without a change, or with a single run on a side.
  std::optional<change_interval> interval;
  finding found = finding::unknown;
};

/// The runs of one side, taken together.
struct compared_side {
  std::size_t runs = 0;
  std::size_t holding = 0; ///< Those whose verdict holds.
  std::size_t empty = 0;   ///< Those that stored nothing.
  /// Of all appends of the side, from 0 to 1.
  double failed_share = 0;
};

/// What `compare` found.
struct comparison {
  comparison_options chosen;
  compared_side before;
  compared_side after;
  std::vector<figure_change> figures;
  /// In words: `"rate -12.3 % [-15.0 %, -9.1 %]"`.
  std::vector<std::string> regressions;
  std::vector<std::string> improvements;
  /// What makes the rest less certain, and what else differs.
  std::vector<std::string> notes;

  bool regressed() const noexcept { return !regressions.empty(); }
};

/// Compares runs, at least one on each side.
///
/// A regression is each of these, and an improvement is the same with the sides
/// swapped, except that a verdict has to hold in every run of `after` for it:
/// - a gated figure is `worse`: by more than the margin, and its interval, if
///   there is one, leaves out no change at all;
/// - a verdict of `after` does not hold, whatever those of `before` do;
/// - the share of failed appends rose by more than the margin, `0.05` being
///   five of a hundred appends;
/// - a larger share of the runs of `after` stored nothing at all, so that there
///   are figures which cannot be compared.
comparison compare(const std::vector<measured_run>& before,
                   const std::vector<measured_run>& after,
                   const comparison_options& chosen);

/// A table, notes, and what it comes to: the last line begins with
/// `comparison: regression: ` or `comparison: no regression beyond `.
std::string to_text(const comparison& made);

/// `{"confidence", "margin": number, "regressed": boolean, "before", "after":
/// {"runs", "holding", "empty": integer, "failedShare": number}, "figures":
/// [{"name": text, "gated": boolean, "before", "after": number, "change":
/// number or null, "interval": [low, high] or null, "finding": text}],
/// "regressions", "improvements", "notes": [text]}`.
json to_json(const comparison& made);

} // namespace troupe::load
