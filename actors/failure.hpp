// Reasons that several actors give, in one wording each.

#pragma once

#include "troupe/core/key.hpp"

namespace troupe::actors {

/// `errc::cancelled`: the runtime has shut down.
error closed();

/// `errc::not_found`.
error unknown_session(const session_key& key);

/// `errc::cancelled`: for a run whose session was there when it began.
error deleted_session(const session_key& key);

} // namespace troupe::actors
