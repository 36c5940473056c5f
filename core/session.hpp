// A session as it was when it was fetched: an immutable value.
//
// State is shown merged and read-only; writing through it does not compile.

#pragma once

#include "troupe/core/event_log.hpp"
#include "troupe/core/key.hpp"
#include "troupe/core/state.hpp"

#include <cstdint>
#include <utility>

namespace troupe {

class session {
public:
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

  const session_key& key() const noexcept { return key_; }

  /// All scopes merged, at one consistent moment; filters on events never
  /// change it.
  const readonly_state& state() const noexcept { return state_; }

  /// The events asked for, oldest first.
  const event_slice& events() const noexcept { return events_; }

  timestamp last_update_time() const noexcept { return last_update_time_; }

  /// 0 when created, +1 per event; the sequence number of the newest event.
  std::uint64_t revision() const noexcept { return revision_; }

private:
  session_key key_;
  readonly_state state_;
  event_slice events_;
  timestamp last_update_time_;
  std::uint64_t revision_;
};

/// `{"id", "appName", "userId", "state", "events", "lastUpdateTime",
/// "revision"}`, as ADK writes it.
json to_json(const session& fetched);

} // namespace troupe
