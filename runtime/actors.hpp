// Optional CAF interface: sends messages to owners as CAF actors, and runs a
// runtime on the program's own actor system.
//
// The only header of runtime/ that includes CAF; link `troupe::actors`.

#pragma once

#include "troupe/actors/handles.hpp"
#include "troupe/runtime/runtime.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/error.hpp>

#include <cstddef>
#include <string>

namespace troupe {

/// Makes systems built from `config` use troupe's scheduler with `threads`
/// workers (0: one per core). Call it before the `caf::actor_system` is made.
void use_fair_scheduler(caf::actor_system_config& config, std::size_t threads);

/// Converts a failure of a request to an owner. A foreign `caf::error` becomes
/// `errc::internal` with its numeric code in the text.
error to_error(const caf::error& failure);

/// Opens a runtime on the caller's actor system, which must outlive it. The
/// system's scheduler runs the actors; call `use_fair_scheduler` on its config
/// to get the scheduler that other runtimes have. Fails like `runtime::open`.
result<runtime> open_runtime(caf::actor_system& system,
                             runtime_options options = {});

/// Returns the actor of an app; makes it if it does not exist. Requests
/// fail with `caf::error`s; `to_error` converts them. After the runtime's
/// shutdown a kept handle refers to an actor that has ended. Fails with
/// `errc::invalid_argument` for a bad name, and with `errc::cancelled`
/// after shutdown.
result<actors::app_handle> app_actor_of(runtime& owner, const std::string& app);

/// Returns the actor of a session. The session keeps its actor while a handle
/// exists. Fails with `errc::invalid_argument` for a bad key, and with
/// `errc::not_found` if the session has no actor: it does not exist, or is idle
/// (see `runtime_options::live_sessions_max`); a `get` gives it one.
result<actors::session_handle> session_actor_of(runtime& owner,
                                                const session_key& key);

} // namespace troupe
