// The owners as CAF actors: the messages they answer, and their handles. Part
// of runtime/actors.hpp.

#pragma once

#include "troupe/core/session.hpp"

#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/atom.hpp>
#include <caf/typed_actor.hpp>

#include <memory>

/// @namespace troupe::actors
/// The owners as CAF actors; link `troupe::actors`.

namespace troupe::actors {

/// First element of a request that appends an event.
using append_atom = caf::atom_constant<caf::atom("append")>;
/// First element of a request for a session with all of its events.
using get_atom = caf::atom_constant<caf::atom("get")>;
/// First element of a request that creates a session; the JSON is its initial
/// state, as in `create_request::state`.
using create_atom = caf::atom_constant<caf::atom("create")>;
/// First element of a request that deletes a session; the answer tells whether
/// it existed.
using remove_atom = caf::atom_constant<caf::atom("remove")>;
/// A fetched session; shared and immutable, never null in an answer.
using session_ptr = std::shared_ptr<const session>;

} // namespace troupe::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::event_ptr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::session_ptr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::session_key)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::json)

namespace troupe::actors {

/// CAF interface of a session's actor:
/// - `append`, event: answers with the event as it is stored.
/// - `get`: answers with the session and all of its events.
///
/// A request fails like the call of `session_service` of that name. The failure
/// is a `caf::error`; `to_error` turns it into a `troupe::error`.
using session_handle
  = caf::typed_actor<caf::replies_to<append_atom, event_ptr>::with<event_ptr>,
                     caf::replies_to<get_atom>::with<session_ptr>>;

/// CAF interface of an app's actor, for its sessions:
/// - `create`, key, initial state: answers with the new session. A blank id
///   means a new UUID v4.
/// - `get`, key: answers with the session and all of its events.
/// - `append`, key, event: answers with the event as it is stored.
/// - `remove`, key: deletes the session; answers whether it existed.
///
/// The app of the key is this app, or empty; for another one a request fails
/// with `errc::invalid_argument`. Failures are those of `session_handle`.
using app_handle = caf::typed_actor<
  caf::replies_to<create_atom, session_key, json>::with<session_ptr>,
  caf::replies_to<get_atom, session_key>::with<session_ptr>,
  caf::replies_to<append_atom, session_key, event_ptr>::with<event_ptr>,
  caf::replies_to<remove_atom, session_key>::with<bool>>;

} // namespace troupe::actors
