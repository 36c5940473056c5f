// The difference between two fetched sessions, or between two revisions of one.

#pragma once

#include "troupe/core/session.hpp"

#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// A key whose value differs. Unset means that the key has no value.
struct key_difference {
  std::string key;            ///< Full key, such as `"user:name"`.
  std::optional<json> before; ///< Value in the first session.
  std::optional<json> after;  ///< Value in the second session.
};

/// The difference between two sessions.
struct session_diff {
  /// Keys with other values, in the order of their bytes.
  std::vector<key_difference> keys;
  /// Events of the first session behind the common beginning.
  event_slice before;
  /// Events of the second session behind the common beginning. Of a later
  /// revision of the same session, these are the events in between.
  event_slice after;
};

/// Compares two sessions. Fetch both with all events: the common beginning is
/// the longest run of first events with equal ids. The `app:` and `user:` keys
/// of two revisions of one session differ only if they changed between the two
/// fetches.
session_diff diff(const session& before, const session& after);

/// Returns `[{"key", "before", "after"}]`. A side without a value has no field.
json to_json(const std::vector<key_difference>& keys);

/// Returns `{"keys": [{"key", "before", "after"}], "eventsBefore": [event],
/// "eventsAfter": [event]}`. A side without a value has no field.
json to_json(const session_diff& found);

} // namespace troupe
