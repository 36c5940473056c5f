// A fetched session, and the requests about sessions: immutable values.
//
// A session is as of one moment. Its state is merged and read-only; an attempt
// to write does not compile.

#pragma once

#include "troupe/core/event_log.hpp"
#include "troupe/core/key.hpp"
#include "troupe/core/state.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// The moment of a fetched session.
enum class session_moment : std::uint8_t {
  now,     ///< The newest revision.
  mixed,   ///< An earlier revision, with the present keys of user and app.
  earlier, ///< An earlier revision, with the keys of user and app of that time.
};

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
          std::uint64_t revision,
          session_moment moment = session_moment::now,
          std::uint64_t first_revision = 0)
    : key_(std::move(key)),
      state_(std::move(state)),
      events_(std::move(events)),
      last_update_time_(last_update_time),
      revision_(revision),
      first_revision_(first_revision),
      moment_(moment) {}

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

  /// The oldest revision that can be read; 0 unless the session was trimmed
  /// (`session_service::trim`). Its events begin behind it. Always 0 in lists.
  std::uint64_t first_revision() const noexcept { return first_revision_; }

  /// Returns true if this is an earlier revision of the session
  /// (`get_options::at`).
  bool is_earlier() const noexcept { return moment_ != session_moment::now; }

  /// Returns true if the `app:` and `user:` keys are the present ones. Always
  /// true for the newest revision. False for an earlier revision if the store
  /// keeps the history of apps and users, as SQLite does: the keys are then as
  /// they were when the session reached that revision.
  bool shared_state_is_of_now() const noexcept {
    return moment_ != session_moment::earlier;
  }

private:
  session_key key_;
  readonly_state state_;
  event_slice events_;
  timestamp last_update_time_;
  std::uint64_t revision_;
  std::uint64_t first_revision_;
  session_moment moment_;
};

namespace detail {

/// The `errc::not_found` for a session that is not at revision `wanted` yet.
error no_revision(const session_key& key,
                  std::uint64_t wanted,
                  std::uint64_t newest);

/// The `errc::gone` for revision `wanted` of a session that was trimmed to
/// revision `first`.
error trimmed_revision(const session_key& key,
                       std::uint64_t wanted,
                       std::uint64_t first);

/// The `errc::gone` for event `wanted` of a session that was trimmed to
/// revision `first`.
error trimmed_event(const session_key& key,
                    std::uint64_t wanted,
                    std::uint64_t first);

} // namespace detail

/// Returns `{"id", "appName", "userId", "state", "events", "lastUpdateTime",
/// "revision"}`, as ADK writes it. For an earlier revision also `"isEarlier":
/// true` and `"sharedStateIsOfNow"`, true or false; for a trimmed session also
/// `"firstRevision"`, the oldest revision that is kept.
json to_json(const session& fetched);

// -- requests ----

/// A request for a new session.
///
/// Requests, which own memory, have constructors: with g++ 12, an aggregate
/// that is made inside a `co_await` expression is destroyed twice. Options are
/// aggregates, since their bytes may be copied.
struct create_request {
  create_request() = default;

  /// A session without state. A blank id means a new UUID v4.
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
  json state = empty_object();
  /// The session's past, oldest first, for imports. Events are checked and
  /// completed like appended ones. The session is created with all events and
  /// their effects in every scope, or not at all. Repeated ids and partial
  /// events fail with `errc::invalid_argument`.
  std::vector<event> events;
  /// Unset means now, or the newest time of `events`. Later events advance it.
  timestamp last_update_time{};
};

/// The choice of the revision and of the events of a fetched session. The
/// default is the session as it is now, with all events.
struct get_options {
  /// Maximum number of events, the newest ones; unset for all. Applied before
  /// `after`.
  std::optional<std::size_t> num_recent_events = {};
  /// Only events at this time or later.
  std::optional<timestamp> after = {};
  /// The session as it was after this many events: its own keys, and the events
  /// up to there. 0 is the state of the creation. The `app:` and `user:` keys
  /// are as they were then, where the store keeps their history, else as they
  /// are now (`session::shared_state_is_of_now`). Unset for the session as it
  /// is now. `get` fails with
  /// `errc::not_found` if the session has no such revision yet, with
  /// `errc::gone` if it was trimmed to a later one, with
  /// `errc::conflict` if the store lost events of it during the read, and with
  /// `errc::invalid_argument` over a store of your own that does not override
  /// `store::load_session_at`.
  std::optional<std::uint64_t> at = {};
};

/// The revision at which a fork begins, and the calls that stay open in it.
struct fork_options {
  /// The revision of the session to begin at; 0 is its creation. Unset for the
  /// newest one. `fork` fails with `errc::not_found` if the session has no such
  /// revision, with `errc::gone` if it was trimmed to a later one, and with
  /// `errc::invalid_argument` over a store of your own that
  /// does not override `store::load_session_at`, unless it is the newest.
  std::optional<std::uint64_t> at = {};
  /// Keeps the calls open that wait for an answer from outside at that
  /// revision, so that they may be answered in both sessions. By default the
  /// fork closes them.
  bool keep_open_calls = false;
};

/// Conditions of an append.
struct append_options {
  /// Refuses the event with `errc::conflict` unless the session has this
  /// revision.
  std::optional<std::uint64_t> expected_revision = {};
};

/// Conditions of a removal.
struct remove_options {
  /// Refuses the removal with `errc::conflict` unless the session has this
  /// revision.
  std::optional<std::uint64_t> expected_revision = {};
  /// Refuses it with `errc::conflict` unless the last update of the session is
  /// before this time.
  std::optional<timestamp> updated_before = {};
};

/// A session after a trim.
struct trimmed_session {
  /// The oldest revision that can be read.
  std::uint64_t first_revision = 0;
  /// Number of events that the trim has deleted.
  std::uint64_t removed = 0;
};

/// The sessions that an expiry removes, or whose old events it removes.
struct expiry_request {
  expiry_request() = default;

  /// Sessions of all users of an app, or of one user, whose last update is
  /// before a time.
  expiry_request(std::string app_id,
                 timestamp updated_before,
                 std::optional<std::string> user_id = {})
    : app(std::move(app_id)),
      user(std::move(user_id)),
      before(updated_before) {}

  std::string app;                 ///< App whose sessions are removed.
  std::optional<std::string> user; ///< User; unset: all of the app.
  /// Sessions stay if their last update is not before this time.
  timestamp before{};
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

/// A query for one page of the names of all apps.
struct app_list_request {
  /// The first `page_limit` apps behind the cursor.
  app_list_request(std::size_t page_limit = 100, std::string page_cursor = {})
    : limit(page_limit),
      cursor(std::move(page_cursor)) {}

  /// Maximum number of names on the page. 0 fails with
  /// `errc::invalid_argument`.
  std::size_t limit;
  /// `next_cursor` of the previous page; empty for the first page.
  std::string cursor;
};

/// A query for one page of the names of an app's users.
struct user_list_request {
  /// The first `page_limit` users of an app behind the cursor.
  user_list_request(std::string app_id,
                    std::size_t page_limit = 100,
                    std::string page_cursor = {})
    : app(std::move(app_id)),
      limit(page_limit),
      cursor(std::move(page_cursor)) {}

  /// Name of the app; see `check_id`.
  std::string app;
  /// Maximum number of names on the page. 0 fails with
  /// `errc::invalid_argument`.
  std::size_t limit;
  /// `next_cursor` of the previous page; empty for the first page.
  std::string cursor;
};

/// One page of a list of apps or users.
struct name_page {
  /// In the order of their bytes.
  std::vector<std::string> names;
  /// The last name of the page; empty on the last page.
  std::string next_cursor;
};

} // namespace troupe
