// Makes the letter of an append. Every event passes this boundary: it is
// checked, completed and counted.

#pragma once

#include "troupe/actors/messages.hpp"
#include "troupe/actors/owners/session.hpp"
#include "troupe/actors/setup.hpp"

#include <memory>

namespace troupe::actors {

/// Makes a letter of `said`: checks it, fills in missing fields and drops
/// `temp:` keys. A shared event is copied before it is changed. Fails with
/// `errc::invalid_argument` or `errc::too_large`.
result<std::unique_ptr<append>>
make_append(event&& said, const append_options& options, setup& shared);
result<std::unique_ptr<append>>
make_append(event_ptr&& said, const append_options& options, setup& shared);

/// The same for an event of a session's past, which may be a rewind: other
/// appends of rewinds are refused.
result<std::unique_ptr<append>> make_past_append(event&& said, setup& shared);

/// The state of a session that a rewind was made from.
struct rewind_basis {
  std::uint64_t revision = 0;
  std::string newest_id; ///< Id of the event of that number.
};

/// The same for a rewind.
result<std::unique_ptr<append>>
make_rewind(event&& said, rewind_basis from, setup& shared);

/// Counts the letter as under way in `session` until it is complete. Fails
/// with `errc::busy` at a limit, and with `errc::cancelled` once the runtime
/// is closing.
result<void> admit(append& letter, session_actor& session, const setup& shared);

/// The same for a session that has to be loaded first, and for a write without
/// a session. Until a session has the letter, only the runtime counts it.
template <class Letter>
result<void> admit(Letter& letter, setup& shared);

extern template result<void> admit(append&, setup&);
extern template result<void> admit(write_state&, setup&);

} // namespace troupe::actors
