// Repeated load tests: means and their confidence intervals.

#pragma once

#include "troupe/load/load_test.hpp"

#include <string>
#include <vector>

namespace troupe::load {

/// A mean and its 95 % confidence interval, which is unset with fewer than two
/// values.
struct estimate {
  double mean = 0;
  std::optional<double> low;
  std::optional<double> high;
};

/// By Student's t distribution. `values` must not be empty.
estimate estimate_mean(const std::vector<double>& values);

/// Several lines; the last one is the verdict on all runs together. `runs` must
/// not be empty.
std::string to_text(const std::vector<outcome>& runs);

} // namespace troupe::load
