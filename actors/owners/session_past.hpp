// Sessions that are created with past events: creation and events are decided
// and stored together, or not at all.

#pragma once

#include "troupe/actors/messages.hpp"
#include "troupe/actors/setup.hpp"

#include <memory>
#include <vector>

namespace troupe::actors {

/// Checks and completes the events that a session is created with. Fails with
/// `errc::invalid_argument` or `errc::too_large`, naming the event.
result<std::vector<std::unique_ptr<append>>>
make_past(std::vector<event> events, setup& shared);

/// Whether the letter, or an event of its past, changes keys of scope `where`.
bool reaches(const append& letter, scope where) noexcept;

/// Adds an accepted letter, and the events of its past, to a climb if they
/// touch wider scopes.
void add_to(climb& up, append& accepted);

/// Resets the letter, and the events of its past, so that they can be
/// judged again.
void reset_all(append& letter);

} // namespace troupe::actors
