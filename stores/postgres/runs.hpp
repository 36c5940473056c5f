// The tables `open_runs`, one row for each open run, and `run_holders`, the
// last sign of life of each process that has one. Times are those of the
// server.

#pragma once

#include "troupe/stores/postgres/connection.hpp"
#include "troupe/stores/postgres/history.hpp"
#include "troupe/stores/postgres/plan.hpp"
#include "troupe/stores/shared/run_gate.hpp"
#include "troupe/stores/store.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// Returns the runs of `changes` that may not open beside others. `known` has
/// the sessions that exist. Call it under the commit lock, under which all runs
/// are opened. Sends nothing if no run must open alone.
result<std::vector<kept_out_run>>
find_kept_out_runs(postgres_connection& connection,
                   std::span<const store_change> changes,
                   const postgres_known& known,
                   std::string_view attempted);

/// Opens and closes runs, in this order. The statements stay in the pipeline;
/// run it inside the transaction of the commit.
void queue_postgres_runs(postgres_connection& connection,
                         std::span<const planned_run> runs);

/// Implements `store::list_runs`.
result<std::vector<open_run>>
list_postgres_runs(postgres_connection& connection,
                   postgres_history& history,
                   const run_query& query);

/// Implements `store::renew_holder`. Forgets the holders without runs that have
/// been silent for long.
result<void> renew_postgres_holder(postgres_connection& connection,
                                   const std::string& id);

/// Implements `store::remove_holder`.
result<void> remove_postgres_holder(postgres_connection& connection,
                                    const std::string& id);

} // namespace troupe
