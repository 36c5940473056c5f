// A fetched session: an immutable value.
//
// Its state is merged and read-only; an attempt to write does not compile.

#pragma once

#include "troupe/core/event_log.hpp"
#include "troupe/core/key.hpp"
#include "troupe/core/state.hpp"

#include <cstdint>
#include <utility>

namespace troupe {

/// A session as it was fetched. Each event is in it completely, with its
/// changes in all scopes, or not at all. Safe to read from several threads. The
/// members of a temporary return copies, which cost O(1), so a loop over
/// `sessions.get(key).value().events()` is safe.
class session {
public:
  /// Makes a session of its parts. `events` may be a selection.
  session(session_key key,
          readonly_state state,
          event_slice events,
          timestamp last_update_time,
          std::uint64_t revision)
    : key_(std::move(key)),
      state_(std::move(state)),
      events_(std::move(events)),
      last_update_time_(last_update_time),
      revision_(revision) {}

  /// Names of the app, the user and the session.
  const session_key& key() const& noexcept { return key_; }

  /// Returns a copy of the names, as this is a temporary.
  session_key key() const&& { return key_; }

  /// The merged state of all scopes. Filters on events do not change it.
  const readonly_state& state() const& noexcept { return state_; }

  /// Returns a copy of the state, as this is a temporary.
  readonly_state state() const&& { return state_; }

  /// The requested events, oldest first.
  const event_slice& events() const& noexcept { return events_; }

  /// Returns a copy of the events, as this is a temporary.
  event_slice events() const&& { return events_; }

  /// The newest time of the creation and of all events, also of those that are
  /// not in `events`.
  timestamp last_update_time() const noexcept { return last_update_time_; }

  /// The number of the newest event: 0 after the creation, plus 1 per event.
  std::uint64_t revision() const noexcept { return revision_; }

private:
  session_key key_;
  readonly_state state_;
  event_slice events_;
  timestamp last_update_time_;
  std::uint64_t revision_;
};

/// Returns `{"id", "appName", "userId", "state", "events", "lastUpdateTime",
/// "revision"}`, as ADK writes it.
json to_json(const session& fetched);

} // namespace troupe
