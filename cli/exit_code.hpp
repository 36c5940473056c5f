// How the program ends: its exit codes, and the one line of reason.

#pragma once

#include "troupe/core/error.hpp"

namespace troupe::cli {

inline constexpr int exit_done = 0;
/// It parsed, but broke a rule or failed later.
inline constexpr int exit_failed = 1;
/// The command line itself is wrong.
inline constexpr int exit_usage = 2;

/// Writes `error: CODE: text` to stderr, as one line, and gives `code`. Every
/// error leaves the program here, without the passwords in it: the command line
/// that an error quotes may hold some.
int report(const error& failure, int code = exit_failed);

} // namespace troupe::cli
