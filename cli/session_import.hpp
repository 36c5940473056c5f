// Sessions from files on their way into a store.

#pragma once

#include "troupe/cli/output.hpp"
#include "troupe/cli/portable_session.hpp"
#include "troupe/runtime/runtime.hpp"

#include <stop_token>
#include <vector>

namespace troupe::cli {

/// Opens a runtime with `options`, creates the sessions one after another,
/// oldest update first, and writes each without its events to `target`, as a
/// line, once all of it is durable.
///
/// Each session is created with its events in one commit, as of its last
/// update: also when the process is killed, it is there whole or not at all,
/// and so is what it does to `user:` and `app:` keys.
///
/// A session starts with the keys of its state that no event of it touches, so
/// that its events leave the state that the file shows. Where they do not, one
/// event by `system` behind them sets what differs: at once for the session's
/// own keys, and with the last session of a user or an app for theirs. `user:`
/// and `app:` keys that the file does not name stay.
///
/// Fails with `errc::invalid_argument` if a session is there twice, and with
/// `errc::already_exists` if one exists; nothing has changed then. With
/// `skip_existing` such a session is left as it is and not written to `target`.
/// When a session fails later, those before it stay.
result<void> import_sessions(std::vector<portable_session> read,
                             runtime_options options,
                             bool skip_existing,
                             output& target,
                             const std::stop_token& stop);

} // namespace troupe::cli
