// Runs a program and reads the text that it prints. Internal.

#pragma once

#include "troupe/core/error.hpp"

#include <chrono>
#include <stop_token>
#include <string>
#include <vector>

namespace troupe {

/// Starts the program `command.front()` with the other elements as arguments
/// and without a shell, in the environment of this process and with an empty
/// stdin. Returns its stdout. Blocks until it has ended.
///
/// Fails with `errc::model_failed` if it cannot be started, ends with another
/// status than 0, prints more than 64 KiB, or has not ended after `limit`; the
/// message names the program, the reason, and the end of its stderr. Fails with
/// `errc::cancelled` when `stop` is requested. A program that has not ended is
/// ended as by `processes::command_run::stop`.
result<std::string> command_output(const std::vector<std::string>& command,
                                   std::chrono::milliseconds limit,
                                   const std::stop_token& stop);

} // namespace troupe
