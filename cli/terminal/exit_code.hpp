// Exit codes of the program, and its error line.

#pragma once

#include "troupe/core/error.hpp"

namespace troupe::cli {

inline constexpr int exit_done = 0;
/// The command line parsed, but broke a rule, or the command failed.
inline constexpr int exit_failed = 1;
/// The command line is wrong.
inline constexpr int exit_usage = 2;

/// Writes `error: CODE: text` to stderr as one line, and returns `code`. Every
/// error of the program passes here; passwords are removed, since an error may
/// quote the command line.
int report(const error& failure, int code = exit_failed);

/// As `report`, for a process that is about to end: a later call of `report`
/// writes nothing and does not return. Thread-safe.
void report_last(const error& failure);

} // namespace troupe::cli
