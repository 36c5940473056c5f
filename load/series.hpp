// The same load test several times: what it comes to, and how sure that is.

#pragma once

#include "troupe/load/load_test.hpp"

#include <string>
#include <vector>

namespace troupe::load {

/// A mean, and the interval that holds it with a confidence of 95 %; nothing of
/// that with fewer than two values.
struct estimate {
  double mean = 0;
  std::optional<double> low;
  std::optional<double> high;
};

/// By Student's t distribution. `values` is not empty.
estimate estimate_mean(const std::vector<double>& values);

/// Several lines, the last of which is the verdict on all runs together.
/// `runs` is not empty.
std::string to_text(const std::vector<outcome>& runs);

} // namespace troupe::load
