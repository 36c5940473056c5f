// A session as ADKs write it to files, so that it can move from one to another.

#pragma once

#include "troupe/core/event.hpp"
#include "troupe/core/session.hpp"

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::cli {

/// What a file says of one session.
struct portable_session {
  /// Parts that the file leaves out are empty.
  session_key key;
  /// Merged, with prefixes, at the end of the events; without `temp:` keys and
  /// nulls.
  json state = json::object();
  std::vector<event> events;
  /// Unset: that of the newest event, or none.
  timestamp last_update_time{};

  /// The keys that events set or erase, with prefixes, without `temp:`.
  std::set<std::string, std::less<>> keys_of_events() const;

  /// The state that it was created with, as far as it can be told: the keys
  /// that no event touches. The events do not depend on the others.
  json initial_state() const;
};

/// `{"id", "appName", "userId", "state", "events", "lastUpdateTime"}`: nothing
/// that other ADKs would refuse.
json to_portable_json(const session& fetched);

/// Reads that, camelCase or snake_case, and checks everything that can be
/// checked without a store. Fields that it does not know are left out. Fails
/// with `errc::invalid_argument` or `errc::too_large`, naming field or event.
result<portable_session> portable_session_from_json(const json& data);

/// Reads a text with one session, or with one on each line. Fails like that,
/// naming the line if there are several.
result<std::vector<portable_session>>
read_portable_sessions(std::string_view text);

} // namespace troupe::cli
