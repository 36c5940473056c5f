// A store put together from three that keep maps, such as those of a program
// that has a database of its own.
//
// A map holds the scope's keys and, under the reserved name `__troupe`, what
// troupe needs besides:
//   app      {"revision": 3, "users": ["ann"]}
//   user     {"revision": 2, "sessions": ["s1"]}
//   session  {"revision": 1, "updated": µs, "events": [{"number": 1, "time":
//   µs,
//             "event": {…}}]}
// Times are microseconds since 1970, events have ADK's wire form. A map without
// that name is a scope at revision 0; `list` does not know such a session.

#pragma once

#include "troupe/stores/map_stores.hpp"

#include <memory>

namespace troupe {

/// A store on three maps, which must outlive it and are called by one thread at
/// a time; app is loaded first, then user, then session.
///
/// Not atomic: a commit saves one map after the other, and what fails half-way,
/// or is killed, leaves the earlier ones written. The app comes first and the
/// session last, so an event is there only when all that it did is, and one
/// that is tried again may do its part in user and app twice.
///
/// One process at a time: what another saves between reading and saving is
/// lost, and `changed_elsewhere` knows of nobody. Each commit saves whole maps,
/// and a session's map holds all of its events, so long sessions become slow.
/// `check` cannot know which maps there are, and finds nothing.
std::unique_ptr<store> compose_store(app_state_store& apps,
                                     user_state_store& users,
                                     session_store& sessions);

} // namespace troupe
