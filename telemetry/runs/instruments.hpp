// The histograms of runs, by the names of OpenTelemetry and ADK.

#pragma once

#include "troupe/telemetry/records/histogram.hpp"

#include <cstddef>
#include <vector>

namespace troupe::telemetry {

/// Index of a histogram in `run_instruments`.
enum measure : std::size_t {
  model_duration,
  model_tokens,
  agent_duration,
  workflow_duration,
  tool_duration,
  agent_model_calls,
  agent_tool_calls,
  append_duration,
  commit_changes,
};

/// Returns all histograms, in the order of `measure`.
std::vector<instrument> run_instruments();

} // namespace troupe::telemetry
