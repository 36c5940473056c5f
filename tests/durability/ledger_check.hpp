// Compares what a store holds with what was sent and acknowledged.

#pragma once

#include "troupe/runtime/runtime.hpp"

#include "ledger_load.hpp"

#include <string>
#include <vector>

namespace troupe::testing {

/// What is wrong, one line per finding, at most some twenty; empty when
/// - every acknowledged event is there once, in order per thread and session,
/// - nothing is there that was never sent, or not as it was sent,
/// - each scope holds what its events come to, in the one order in which their
///   resolved values follow from each other.
///
/// Nothing else may be writing.
std::vector<std::string>
findings_of(session_service& sessions, const work_plan& work, ledgers& written);

/// The same on a store that is opened for it, of which also its own `check` has
/// to find nothing. Then sends what was not acknowledged once more, and some
/// that was, and compares again.
std::vector<std::string> findings_at(const runtime_options& options,
                                     const work_plan& work,
                                     ledgers& written);

} // namespace troupe::testing
