// The one boundary that every event passes: checked, completed, counted, and
// made a letter.

#pragma once

#include "troupe/actors/messages.hpp"
#include "troupe/actors/session_actor.hpp"
#include "troupe/actors/setup.hpp"

#include <memory>

namespace troupe::actors {

/// Checks `said` and fills in what is missing; the caller's event stays as it
/// is. `temp:` keys are dropped. Fails with `errc::invalid_argument` or
/// `errc::too_large`.
result<std::unique_ptr<append>>
make_append(event said, const append_options& options, setup& shared);
result<std::unique_ptr<append>>
make_append(event_ptr said, const append_options& options, setup& shared);

/// Counts the letter as under way in `session`, until it is complete. Fails
/// with `errc::busy`, or `errc::cancelled` once the runtime is closing.
result<void> admit(append& letter, session_actor& session, const setup& shared);

/// The same for a session that has to be loaded first: counts in the runtime
/// alone until it is there.
result<void> admit(append& letter, setup& shared);

} // namespace troupe::actors
