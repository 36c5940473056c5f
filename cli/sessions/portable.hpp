// A session in the form in which ADK implementations exchange it.

#pragma once

#include "troupe/core/event.hpp"
#include "troupe/core/session.hpp"

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::cli {

/// One session of a file.
struct portable_session {
  /// Parts that the file leaves out are empty.
  session_key key;
  /// Merged state after all events, with prefixes; without `temp:` keys and
  /// nulls.
  json state = json::object();
  std::vector<event> events;
  /// Unset: the time of the newest event, or none.
  timestamp last_update_time{};

  /// Keys that events set or erase, with prefixes, without `temp:`.
  std::set<std::string, std::less<>> keys_of_events() const;

  /// The initial state, as far as it is known: the keys that no event touches.
  /// The events do not depend on the other keys.
  json initial_state() const;
};

/// Reads one event of a session and makes all checks that need no store. Fails
/// with `errc::invalid_argument`, also if the event is partial, or with
/// `errc::too_large`.
result<event> portable_event_from_json(const json& data);

/// Returns the state without `temp:` keys and nulls, which no session keeps.
/// `data` is an object. Fails in the same way.
result<json> portable_state_from_json(const json& data);

/// `{"id", "appName", "userId", "state", "events", "lastUpdateTime"}`: only
/// fields that other ADK implementations accept.
json to_portable_json(const session& fetched);

/// Reads that form, with camelCase or snake_case names, and makes all checks
/// that need no store. Unknown fields are ignored. Fails with
/// `errc::invalid_argument` or `errc::too_large`; the message names the field
/// or event.
result<portable_session> portable_session_from_json(const json& data);

/// Reads a text with one session, or with one on each line. Fails in the same
/// way; with several sessions the message also names the line.
result<std::vector<portable_session>>
read_portable_sessions(std::string_view text);

} // namespace troupe::cli
