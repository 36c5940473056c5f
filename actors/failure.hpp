// Errors that more than one actor returns.

#pragma once

#include "troupe/core/key.hpp"

namespace troupe::actors {

/// `errc::cancelled`: the runtime has shut down.
error closed();

/// `errc::cancelled`: the run was cancelled while it waited for its session.
error cancelled_before_start();

/// `errc::not_found`.
error unknown_session(const session_key& key);

/// `errc::cancelled`: the session of a run was deleted after the run began.
error deleted_session(const session_key& key);

} // namespace troupe::actors
