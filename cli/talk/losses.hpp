// The line that tells a user which updates a run has lost.

#pragma once

#include "troupe/runtime/run.hpp"

#include <string>

namespace troupe::cli {

/// Returns text such as `lost updates: 63 (n, user:n)`, or nothing if the run
/// has lost none.
std::string losses_of(const run& ended);

} // namespace troupe::cli
