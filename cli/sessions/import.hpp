// Imports sessions from a file or another database into a store.

#pragma once

#include "troupe/cli/sessions/portable.hpp"
#include "troupe/cli/terminal/output.hpp"
#include "troupe/runtime/runtime.hpp"

#include <cstddef>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace troupe::cli {

/// Sessions to import. They are read one at a time, so memory does not grow
/// with their number.
struct import_source {
  /// An app, or one of its users.
  struct owner {
    std::string app;
    std::optional<std::string> user;
  };

  /// Oldest update first. User and app end in the state of the newest session,
  /// and its newest event stays the one that set it.
  std::vector<session_key> keys;
  /// Size of the largest state as JSON.
  std::size_t state_bytes_max = 0;
  /// Reads a session. Called at most once for each index, in order.
  std::function<result<portable_session>(std::size_t index)> read;

  /// Apps and users without a session in `keys`, and the reader of their keys,
  /// which have prefixes.
  std::vector<owner> owners = {};
  std::function<result<json>(const owner&)> read_state = {};
};

struct import_counts {
  std::size_t sessions = 0;
  /// With those that set differences.
  std::size_t events = 0;
  /// Sessions that existed already.
  std::size_t skipped = 0;
};

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
///
/// After the sessions, the keys of each owner without one are set one by one,
/// and those of each owner whose newest session is skipped.
result<import_counts> import_sessions(const import_source& from,
                                      runtime_options options,
                                      bool skip_existing,
                                      output& target,
                                      const std::stop_token& stop);

/// The same for sessions in memory, in any order.
result<import_counts> import_sessions(std::vector<portable_session> read,
                                      runtime_options options,
                                      bool skip_existing,
                                      output& target,
                                      const std::stop_token& stop);

} // namespace troupe::cli
