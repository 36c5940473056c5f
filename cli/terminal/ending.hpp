// Exit codes of commands that write their results to stdout.

#pragma once

#include "troupe/cli/terminal/interrupts.hpp"
#include "troupe/cli/terminal/output.hpp"

#include <string_view>

namespace troupe::cli {

/// Returns the exit code of a command that wrote its results to `target`.
/// Reports its failure, unless the reader of `target` is gone.
int end(const result<void>& done, const output& target);

/// The same for a command that can be stopped by a signal. After a signal its
/// failure is always reported, and the exit code is that of the signal.
int end(const result<void>& done,
        const output& target,
        const interrupts& signals);

/// Writes `text` to stdout and returns the exit code, as `end` does. Stops when
/// the descriptor `interrupted` becomes readable; -1: never.
int print(std::string_view text, int interrupted = -1);

} // namespace troupe::cli
