// The opt-in door: talk to the owners as CAF actors, or bring an actor system
// of your own.
//
// The only header of runtime/ that includes CAF; link `troupe::actors`.

#pragma once

#include "troupe/actors/caf_door.hpp"
#include "troupe/actors/messages.hpp"
#include "troupe/runtime/runtime.hpp"

#include <caf/actor_system.hpp>

namespace troupe {

/// A runtime on an actor system of the caller's, which must outlive it. Its
/// scheduler runs the actors: `actors::use_fair_scheduler` gives it the one
/// that a runtime of its own has. Fails like `runtime::open`.
result<runtime> open_runtime(caf::actor_system& system,
                             runtime_options options = {});

/// The actor of an app, made when missing. Requests fail with `caf::error`s
/// that `actors::to_error` turns back. A handle kept past the runtime's
/// shutdown finds the actor gone. Fails with `errc::invalid_argument`, or
/// `errc::cancelled` after shutdown.
result<actors::app_handle> app_actor_of(runtime& owner, const std::string& app);

/// The actor of a live session. Fails with `errc::invalid_argument` or
/// `errc::not_found`.
result<actors::session_handle> session_actor_of(runtime& owner,
                                                const session_key& key);

} // namespace troupe
