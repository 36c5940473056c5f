// Removal of whole users and apps, with the question before it and the counts
// in it; and of the apps and sessions that a command has made.

#pragma once

#include "troupe/cli/options/store_option.hpp"
#include "troupe/cli/terminal/interrupts.hpp"

#include <optional>
#include <string>
#include <vector>

namespace troupe::cli {

/// An app, or one user of it, to remove.
struct unwanted {
  std::string app;
  std::optional<std::string> user; ///< Unset: the whole app.
  bool is_confirmed = false;       ///< Remove without a question.
};

/// Counts users and sessions, asks, removes, and prints the counts as a line of
/// JSON. If the user or app does not exist, it neither asks
/// nor fails. Returns the exit code.
/// A signal before the removal ends the program.
int remove_from(const store_option& store,
                const unwanted& wanted,
                interrupts& signals);

/// Removes all apps whose names begin with `prefix`; returns their number. A
/// store in memory has none: it has ended with its program.
result<std::size_t> remove_apps(const store_option& store,
                                const std::string& prefix);

/// Removes these sessions; returns the number of those that existed. Their
/// artifacts are removed, too, if the store option names where they are.
result<std::size_t> remove_sessions(const store_option& store,
                                    const std::vector<session_key>& unwanted);

} // namespace troupe::cli
