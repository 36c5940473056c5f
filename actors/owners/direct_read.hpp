// Reads state that is kept in memory alone from the caller's thread, without a
// letter, while its owners sleep.
//
// The owners are paused from the session up to the app, and then all of them
// must be without letters. A climb that has reached one owner and not the next
// is a letter to one of them. So the result holds each event completely or not
// at all, as the answer to a letter does.

#pragma once

#include "troupe/core/key.hpp"
#include "troupe/core/session.hpp"

#include <optional>
#include <string>

namespace troupe::actors {

struct setup;

/// Returns the session, or nothing if a letter has to ask for it: state is in a
/// store, an owner is busy, or the session is not found. Thread-safe.
std::optional<session> read_directly(setup& shared,
                                     const session_key& key,
                                     const get_options& options);

} // namespace troupe::actors
