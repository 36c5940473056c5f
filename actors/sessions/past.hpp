// Sessions that are created with past events: creation and events are decided
// and stored together, or not at all.

#pragma once

#include "troupe/actors/messages.hpp"

#include <cstddef>

namespace troupe::actors {

/// Returns true if the letter, or an event of its past, changes keys of scope
/// `where`.
bool reaches(const append& letter, scope where) noexcept;

/// Adds an accepted letter, and the events of its past, to a climb if they
/// touch wider scopes.
void add_to(climb& up, append& accepted);

/// Resets the letter, and the events of its past, so that they can be
/// judged again.
void reset_all(append& letter);

/// The error of event `number` of a past.
error with_number(std::size_t number, const error& why);

} // namespace troupe::actors
