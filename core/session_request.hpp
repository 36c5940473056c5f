// Requests about sessions, as plain values.

#pragma once

#include "troupe/core/session.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// Receives the result of a call, once. It is called on a thread of the
/// runtime, or, if the result is known at once, on the caller's thread before
/// the call returns. It must not block and must not throw.
template <class T>
using completion = std::function<void(result<T>)>;

/// A request for a new session.
///
/// The types of requests have constructors instead of designated initializers:
/// g++ 12 destroys an aggregate that is made inside a `co_await` expression
/// twice.
struct create_request {
  create_request() = default;

  /// A session without state. An empty id means a new UUID v4.
  create_request(std::string app_id,
                 std::string user_id,
                 std::string session_id = {})
    : app(std::move(app_id)),
      user(std::move(user_id)),
      id(std::move(session_id)) {}

  /// A session of this key, without state.
  create_request(session_key key)
    : create_request(
      std::move(key.app), std::move(key.user), std::move(key.id)) {}

  /// Name of the app; see `check_id`.
  std::string app;
  /// Name of the user; see `check_id`.
  std::string user;
  /// A blank id means a new UUID v4.
  std::string id;
  /// Initial state, `{"topic": …, "user:name": …, "app:theme": …}`. Nulls and
  /// `temp:` keys are dropped.
  json state = json::object();
  /// The session's past, oldest first, for imports. Events are checked and
  /// completed like appended ones. The session is created with all events and
  /// their effects in every scope, or not at all. Repeated ids and partial
  /// events fail with `errc::invalid_argument`.
  std::vector<event> events;
  /// Unset means now, or the newest time of `events`. Later events advance it.
  timestamp last_update_time{};
};

/// The choice of events of a fetched session. The default is all events.
struct get_options {
  /// Maximum number of events, the newest ones; unset for all. Applied before
  /// `after`.
  std::optional<std::size_t> num_recent_events = {};
  /// Only events at this time or later.
  std::optional<timestamp> after = {};
};

/// Conditions of an append.
struct append_options {
  /// Refuses the event with `errc::conflict` unless the session has this
  /// revision.
  std::optional<std::uint64_t> expected_revision = {};
};

/// A request for one page of the list of sessions.
struct list_request {
  list_request() = default;

  /// Sessions of all users of an app, or of one user.
  list_request(std::string app_id,
               std::optional<std::string> user_id = {},
               std::size_t page_limit = 100,
               std::string page_cursor = {})
    : app(std::move(app_id)),
      user(std::move(user_id)),
      limit(page_limit),
      cursor(std::move(page_cursor)) {}

  /// Name of the app; see `check_id`.
  std::string app;
  /// Unset for all users of the app.
  std::optional<std::string> user;
  /// Maximum number of sessions on the page. 0 fails with
  /// `errc::invalid_argument`.
  std::size_t limit = 100;
  /// `next_cursor` of the previous page; empty for the first page.
  std::string cursor;
};

/// One page of a list of sessions.
struct session_page {
  /// Sessions without events, newest update first. Each row is consistent, but
  /// rows may be from different moments.
  std::vector<session> sessions;
  /// Empty on the last page.
  std::string next_cursor;
};

} // namespace troupe
