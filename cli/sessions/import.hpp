// Imports sessions from files into a store.

#pragma once

#include "troupe/cli/sessions/portable.hpp"
#include "troupe/cli/terminal/output.hpp"
#include "troupe/runtime/runtime.hpp"

#include <stop_token>
#include <vector>

namespace troupe::cli {

/// Opens a runtime with `options` and creates the sessions one after another,
/// oldest update first. Writes each to `target` as a line without events, once
/// it is durable.
///
/// Each session is created with its events in one commit, with its last update
/// time. So it exists completely or not at all, even if the process is killed,
/// and so do its changes of `user:` and `app:` keys.
///
/// A session starts with the keys of its state that none of its events touches,
/// so that the events lead to the state in the file. If they do not, one event
/// by `system` after them sets the difference: for the session's own keys at
/// once, and for keys of a user or app with the last session of that owner.
/// `user:` and `app:` keys that the file does not name stay.
///
/// Fails with `errc::invalid_argument` if a session occurs twice, and with
/// `errc::already_exists` if one exists; nothing is changed then. With
/// `skip_existing`, an existing session is left as it is and not written to
/// `target`. If a session fails later, earlier ones stay.
result<void> import_sessions(std::vector<portable_session> read,
                             runtime_options options,
                             bool skip_existing,
                             output& target,
                             const std::stop_token& stop);

} // namespace troupe::cli
