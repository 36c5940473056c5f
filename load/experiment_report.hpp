// What an experiment has found, by variant, for people and for programs.

#pragma once

#include "troupe/load/experiment_run.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe::load {

/// A figure over the runs of a variant that ended well.
struct run_figure {
  double mean = 0;
  /// The interval that holds the mean with a confidence of 95 %; nothing with
  /// a single run.
  std::optional<double> low;
  std::optional<double> high;
  double min = 0;
  double p50 = 0;
  double p90 = 0;
  double max = 0;
};

/// Of `values`, which are not empty.
run_figure figure_of(std::vector<double> values);

struct variant_summary {
  std::string name;
  std::size_t runs = 0;
  /// By error code, or `waiting`.
  std::map<std::string, std::uint64_t> failed;
  /// Times in nanoseconds; nothing when no run has ended well.
  std::optional<run_figure> wall;
  std::optional<run_figure> longest_lane;
  /// Work in the time that it took: how much was done at a time.
  std::optional<run_figure> parallelism;
  /// Of the time beyond the longest lane, for each of its model calls.
  std::optional<run_figure> overhead_per_turn;
  std::optional<run_figure> model_calls;
  std::optional<run_figure> tool_calls;
  /// Nothing when no model tells.
  std::optional<run_figure> tokens;
  /// The share of runs of the same input that said what most of them said, on
  /// average over the inputs; nothing when no input was run twice.
  std::optional<double> agreement;
  /// How often each key had which value at the end, the most frequent first.
  std::map<std::string, std::vector<std::pair<json, std::uint64_t>>> keys;
};

/// One for each variant, in order.
std::vector<variant_summary> summarize(const experiment_outcome& made);

/// A table and what is behind it.
std::string to_text(const experiment_outcome& made);

/// Everything, with stable names; docs/experiments.md lists them. Timelines of
/// at most `timelines_max` runs, those of each variant in turn.
json to_json(const experiment_outcome& made,
             std::size_t timelines_max = SIZE_MAX);

} // namespace troupe::load
