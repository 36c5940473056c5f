// Sessions as callers use them: create, read, list, append, delete.
//
// Each call returns a `pending` answer (contexts/pending.hpp): `get` blocks for
// it, `then` calls back, `co_await` suspends a coroutine. The call starts when
// one of them is used; the calls of one thread on one session take effect in
// the order in which they start.

#pragma once

#include "troupe/contexts/pending.hpp"
#include "troupe/core/event.hpp"
#include "troupe/core/key.hpp"
#include "troupe/core/session.hpp"
#include "troupe/core/session_request.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace troupe {

class session_state;
class session_writer;

namespace detail {
class session_backend;
}

/// Access to the sessions of a runtime. All members are thread-safe. Ids are
/// trimmed and checked on every call.
///
/// Every call can fail with `errc::invalid_argument` (a bad id) and, after
/// shutdown, with `errc::cancelled`. `get` and `value` of its answer fail with
/// `errc::would_deadlock` on a thread of the runtime. Over a store a call can
/// also fail with `errc::store_failed`, whose outcome is unknown (an event may
/// be sent again with the same id), and with `errc::corrupt`.
class session_service {
public:
  /// Wraps the back end of a runtime. Copies refer to the same runtime; after
  /// its shutdown their calls fail with `errc::cancelled`.
  explicit session_service(std::shared_ptr<detail::session_backend> backend);

  /// Creates a session. The initial state is split by scope; it is revision 0
  /// and no event. Fails with `errc::already_exists` if the session exists; of
  /// several concurrent creators one succeeds. Fails with
  /// `errc::invalid_argument` for a bad key of the state or bad past events,
  /// and with `errc::too_large`.
  pending<session> create(create_request request);

  /// The same with this initial state in place of the request's.
  pending<session> create(create_request request, json state);

  /// Returns the session with its events and state, a consistent cut over
  /// session, user and app. Fails with `errc::not_found`.
  pending<session> get(session_key key, get_options options = {});

  /// Returns sessions of an app or of one user, newest update first, a page at
  /// a time. An empty page is no error. Fails with `errc::invalid_argument` for
  /// a limit of 0, and for a cursor that `list` did not return.
  pending<session_page> list(list_request request);

  /// Appends `said` to the session, applies its delta in all scopes together,
  /// and returns the event as it is stored.
  ///
  /// A missing id, timestamp and invocation id are filled in when the call
  /// starts, and `temp:` keys are dropped. A partial event is returned and
  /// changes nothing. An event takes effect once: if its id is in the session
  /// already, the call returns the stored event.
  ///
  /// Fails with `errc::not_found` (create the session first), `errc::conflict`
  /// (another revision than expected, or other content under the same id),
  /// `errc::type_error` (the operation does not fit the value),
  /// `errc::too_large`, and `errc::busy` (try again later). Nothing is applied
  /// then. Scope rules follow ADK.
  pending<event_ptr>
  append_event(session_key key, event said, append_options options = {});

  /// The same for a shared event. It is stored without a copy if no field has
  /// to be filled in or dropped.
  pending<event_ptr>
  append_event(session_key key, event_ptr said, append_options options = {});

  /// Deletes a session; returns whether it existed. Takes its place in the
  /// session's order: earlier appends are answered first, later ones fail with
  /// `errc::not_found`. Cancels the session's runs and removes its artifacts;
  /// user and app state stay.
  pending<bool> remove(session_key key);

  /// Deletes all sessions, the state and the artifacts of a user. Returns
  /// whether there were any.
  pending<bool> remove_user(std::string app, std::string user);

  /// Returns the keys of a user without their prefix, as an object:
  /// `{"theme": …}`. Empty if there are none.
  pending<json> user_state(std::string app, std::string user);

  /// Returns the keys of the app without their prefix. Empty if there are none.
  pending<json> app_state(std::string app);

  /// Returns a handle to the state of one session. The key is checked on use.
  session_state state(session_key key);

  /// Returns a writer whose appends stop at the first failure
  /// (runtime/session_writer.hpp). The key is checked on use.
  session_writer writer(session_key key);

private:
  friend class session_state;

  std::shared_ptr<detail::session_backend> backend_;
};

/// A handle to the state of one session; copies refer to the same session.
/// Thread-safe. The calls fail like the session service's. Each write is an
/// event by author `system`.
class session_state {
public:
  /// Makes the handle. The key is checked by each call, not here.
  session_state(session_service service, session_key key)
    : service_(std::move(service)),
      key_(std::move(key)) {}

  /// The key as it was given, neither trimmed nor checked.
  const session_key& key() const noexcept { return key_; }

  /// Returns the newest value, or nothing if the key is not set. Keys have
  /// their prefix: `topic`, `user:name`, `app:theme`.
  pending<std::optional<value>> get(std::string key);

  /// Sets a key, without regard to its present value. Of concurrent writes the
  /// last one remains. A null removes the key.
  pending<void> set(std::string key, json data);
  /// Removes a key. It is no error if the key is not set.
  pending<void> remove(std::string key);

  /// Returns the state of all scopes at one moment.
  pending<readonly_state> snapshot();

private:
  pending<void> write(std::string key, operation_kind kind, json operand);

  session_service service_;
  session_key key_;
};

} // namespace troupe
