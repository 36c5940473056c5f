// The report of an experiment, by variant, as text and as JSON.

#pragma once

#include "troupe/load/experiment_run.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe::load {

/// One figure over the successful runs of a variant, in the unit of its values.
struct run_figure {
  double mean = 0; ///< Arithmetic mean.
  /// Lower end of the 95 % confidence interval of the mean, by Student's t
  /// distribution; unset with a single run.
  std::optional<double> low;
  /// Upper end of that interval; unset with a single run.
  std::optional<double> high;
  double min = 0; ///< Smallest value.
  double p50 = 0; ///< The value at half of the sorted values.
  double p90 = 0; ///< The value at 90 % of the sorted values.
  double max = 0; ///< Largest value.
};

/// Computes a figure of `values`, which must not be empty.
run_figure figure_of(std::vector<double> values);

/// Figures of all runs of one variant.
struct variant_summary {
  /// Name of the variant.
  std::string name;
  /// Number of runs that have ended, the failed ones included.
  std::size_t runs = 0;
  /// Number of failures by error code; `waiting` for runs that wait.
  std::map<std::string, std::uint64_t> failed;
  /// Wall time in nanoseconds. This and the figures below are unset if no run
  /// succeeded.
  std::optional<run_figure> wall;
  /// `timeline::longest_lane` in nanoseconds.
  std::optional<run_figure> longest_lane;
  /// Work divided by wall time: the average number of concurrent steps.
  std::optional<run_figure> parallelism;
  /// Wall time beyond the longest lane in nanoseconds, divided by the model
  /// calls of that lane (at least 1).
  std::optional<run_figure> overhead_per_turn;
  /// Number of model calls.
  std::optional<run_figure> model_calls;
  /// Number of tool calls.
  std::optional<run_figure> tool_calls;
  /// Number of tokens; unset if no run reports tokens.
  std::optional<run_figure> tokens;
  /// Cost, over the runs whose models all have a price; unset without prices,
  /// and if there is no such run.
  std::optional<run_figure> cost;
  /// Tokens of models without a price over all runs, by model.
  std::map<std::string, std::uint64_t> unpriced;
  /// Share of runs of the same input with the most frequent output, averaged
  /// over the inputs; unset if no input was run twice.
  std::optional<double> agreement;
  /// Number of occurrences of each final value, by key; most frequent first.
  std::map<std::string, std::vector<std::pair<json, std::uint64_t>>> keys;
};

/// One summary for each variant, in order.
std::vector<variant_summary> summarize(const experiment_outcome& made);

/// Returns a table of the variants and details, as several lines.
std::string to_text(const experiment_outcome& made);

/// The whole report with stable names; docs/experiments.md lists them. Includes
/// timelines of at most `timelines_max` runs, taken from the variants in turn.
json to_json(const experiment_outcome& made,
             std::size_t timelines_max = SIZE_MAX);

} // namespace troupe::load
