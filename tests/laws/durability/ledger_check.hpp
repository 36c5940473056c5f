// Compares the content of a store with the events that were sent and
// acknowledged.

#pragma once

#include "troupe/runtime/runtime.hpp"

#include "ledger_load.hpp"

#include <string>
#include <vector>

namespace troupe::testing {

/// Returns the violations, one per line and about twenty at most. There are
/// none if
/// - every acknowledged event is stored once, in order per thread and session,
/// - every stored event was sent, with the same content,
/// - each scope holds the result of its events, in the one order in which their
///   resolved values follow from each other.
///
/// No other writer may be active.
std::vector<std::string>
findings_of(session_service& sessions, const work_plan& work, ledgers& written);

/// Opens the store, compares it with the ledgers and runs its own `check`. Then
/// sends the unacknowledged events and some acknowledged ones again, and
/// compares once more.
std::vector<std::string> findings_at(const runtime_options& options,
                                     const work_plan& work,
                                     ledgers& written);

} // namespace troupe::testing
