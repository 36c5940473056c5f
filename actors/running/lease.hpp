// Decides if the process of an open run may still execute it: by its name, or
// else by the lease.
//
// This decides when another process may try to recover a run. The commit of the
// claim checks holder and silence again (`run_mark::taken_from`).

#pragma once

#include "troupe/actors/setup.hpp"
#include "troupe/contexts/pending.hpp"
#include "troupe/stores/store.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors {

/// Returns true if the holder of the run is unknown to the store, or has been
/// silent for longer than `lease`.
bool is_silent(const open_run& listed, std::chrono::nanoseconds lease) noexcept;

/// Returns true if the holder of the run is silent, has left it, or has died as
/// seen from the process named `own`. May read a file of the kernel.
bool is_free(const open_run& listed,
             const std::string& own,
             std::chrono::nanoseconds lease);

/// Returns all open runs that the query asks for, page by page, the oldest
/// first. Fails like `store::list_runs`. Blocks.
result<std::vector<open_run>> list_all_runs(store& kept, run_query query);

/// Returns all open runs of a session, the oldest first. Fails like
/// `store::list_runs`. Blocks.
result<std::vector<open_run>> list_session(store& kept, const session_key& key);

/// Finds an open run of a session; unset if it is not open. Fails like
/// `store::list_runs`. Blocks.
result<std::optional<open_run>> find_open(store& kept,
                                          const session_key& key,
                                          const std::string& invocation_id);

/// Returns a run that is free, or is held by `own`; unset if the run is not
/// open. Otherwise fails with `errc::busy`, and tells when to try again. Fails
/// like `store::list_runs`, too. Blocks.
result<std::optional<open_run>> find_free(store& kept,
                                          const session_key& key,
                                          const std::string& invocation_id,
                                          const std::string& own,
                                          std::chrono::nanoseconds lease);

/// Returns the holder of a run that `find_free` has found, for
/// `run_mark::taken_from`. `silent_for` is set if the holder is another process
/// that is silent and has not left the run.
former_holder holder_of(const open_run& free, const setup& shared);

/// Returns the error of a recovery that finds no such open run.
error no_open_run(const session_key& key, const std::string& invocation_id);

/// The same as `find_free` with the store, the holder and the lease of a
/// runtime, which must have a store that keeps open runs.
pending<std::optional<open_run>> find_free(const std::shared_ptr<setup>& shared,
                                           session_key key,
                                           std::string invocation_id);

} // namespace troupe::actors
