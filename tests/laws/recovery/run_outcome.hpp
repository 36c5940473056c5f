// The end of a run of a counted tree, as values to compare with those of a run
// that nothing has disturbed.

#pragma once

#include "troupe/core/session.hpp"

#include "counted_trees.hpp"

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace troupe::testing {

/// The keys with which each step was begun, by step (`outside_world::note`).
using outside_calls = std::map<std::string, std::set<std::string>>;

/// The outcome of a run on a session of its own.
struct run_outcome {
  /// State of session, user and app.
  json state;
  /// The events but for claims, one a line without ids, times and the numbers
  /// in their changes of state, sorted. The last two depend on the order of
  /// lanes.
  std::vector<std::string> events;
  /// Number of different keys of each step.
  std::map<std::string, std::size_t> calls;
};

/// The outcome of each of `counted_trees()` that nothing disturbs.
const std::vector<run_outcome>& undisturbed_outcomes();

/// Compares the events of a session that had one run, of `tree`, with the
/// undisturbed ones. Also checks that no event is there twice, and that claims
/// are numbered from 1. Returns the violations.
std::vector<std::string> compare_events(std::size_t tree, const session& found);

/// Checks that each step of the run was begun at least once, and always with
/// its key: that of the event which records its end. Returns the violations.
std::vector<std::string> compare_calls(std::size_t tree,
                                       const session& found,
                                       const outside_calls& calls);

} // namespace troupe::testing
