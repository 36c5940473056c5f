// A question before work that cannot be undone.

#pragma once

#include "troupe/core/error.hpp"

#include <string>

namespace troupe::cli {

/// Asks `question` on stderr and reads the answer from the terminal; only `y`
/// and `yes` confirm. Fails with `errc::invalid_argument` if stdin is no
/// terminal, and with `errc::cancelled` on any other answer.
result<void> confirm(const std::string& question);

} // namespace troupe::cli
