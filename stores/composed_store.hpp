// A store made of three map stores, such as those of a program that has its own
// database.
//
// A map holds the scope's keys and, under the reserved name `__troupe`, the
// data that troupe needs besides:
//     app      {"revision": 3, "users": ["ann"]}
//     user     {"revision": 2, "sessions": ["s1"]}
//     session  {"revision": 1, "updated": µs,
//               "events": [{"number": 1, "time": µs, "event": {…}}]}
// Times are microseconds since 1970; events have ADK's wire form. A map without
// `__troupe` is a scope at revision 0; `list` does not find such a session.

#pragma once

#include "troupe/stores/map_stores.hpp"

#include <memory>

namespace troupe {

/// Makes a store from three map stores. They must outlive the store, which
/// calls them from one thread at a time.
///
/// The store is not atomic: a commit saves one map after the other, so a commit
/// that fails or is killed half-way leaves the earlier maps written. The app is
/// saved first and the session last. So a stored event has all of its effects,
/// but a retried event may take effect twice in user and app.
///
/// Use it from one process at a time: a map that another process saves between
/// load and save is lost, and `changed_elsewhere` reports nothing. Each commit
/// saves whole maps, and a session's map holds all of its events, so long
/// sessions become slow. `check` cannot enumerate the maps and finds nothing.
std::unique_ptr<store> compose_store(app_state_store& apps,
                                     user_state_store& users,
                                     session_store& sessions);

} // namespace troupe
