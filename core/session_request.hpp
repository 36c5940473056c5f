// What callers ask of sessions, as plain values.

#pragma once

#include "troupe/core/session.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// Receives the answer of a call, once, on a thread of the runtime, or on the
/// caller's own before the call returns when it is refused at once; must not
/// block and must not throw.
template <class T>
using completion = std::function<void(result<T>)>;

struct create_request {
  std::string app = {};
  std::string user = {};
  /// Blank: a new UUID v4.
  std::string id = {};
  /// `{"topic": …, "user:name": …, "app:theme": …}`; nulls and `temp:` keys are
  /// dropped.
  json state = json::object();
  /// The session's past, oldest first, for imports: checked and completed like
  /// appended events. The session is there with all of them and all that they
  /// do in every scope, or not at all. An id that comes twice and a partial
  /// event are `errc::invalid_argument`.
  std::vector<event> events = {};
  /// Unset: now, or the newest time of `events`. A later event moves it on.
  timestamp last_update_time{};
};

struct get_options {
  /// Unset: all; 0: none. Applied before `after`.
  std::optional<std::size_t> num_recent_events = {};
  /// Only events at this time or later.
  std::optional<timestamp> after = {};
};

struct append_options {
  /// Refuses the event with `errc::conflict` unless the session's revision is
  /// this one.
  std::optional<std::uint64_t> expected_revision = {};
};

struct list_request {
  std::string app = {};
  /// Unset: all users of the app.
  std::optional<std::string> user = {};
  std::size_t limit = 100;
  /// `next_cursor` of the page before; empty: from the start.
  std::string cursor = {};
};

struct session_page {
  /// Without events, newest update first. Each row is consistent; the list as a
  /// whole is no single moment.
  std::vector<session> sessions;
  /// Empty on the last page.
  std::string next_cursor;
};

} // namespace troupe
