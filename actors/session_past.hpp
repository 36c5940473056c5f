// Sessions that are created with their past: all events of it are decided and
// stored with the creation, or none.

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

/// Whether the letter, or an event that it creates a session with, changes the
/// keys of that owner.
bool reaches(const append& letter, scope where) noexcept;

/// Adds to a climb what an accepted letter does to wider owners.
void add_to(climb& up, append& accepted);

/// Makes the letter and the events of its past as they were before they were
/// judged.
void reset_all(append& letter);

} // namespace troupe::actors
