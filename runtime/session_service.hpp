// Sessions as callers use them: create, read, list, append, delete.
//
// Each call returns a `pending` answer (contexts/pending.hpp): `get` blocks for
// it, `then` calls back, `co_await` suspends a coroutine. The call starts when
// one of them is used; the calls of one thread on one session take effect in
// the order in which they start.

#pragma once

#include "troupe/agents/open_call.hpp"
#include "troupe/contexts/pending.hpp"
#include "troupe/core/event.hpp"
#include "troupe/core/key.hpp"
#include "troupe/core/session.hpp"
#include "troupe/runtime/follower.hpp"
#include "troupe/runtime/live_state.hpp"
#include "troupe/runtime/rewind.hpp"
#include "troupe/runtime/shared_state.hpp"
#include "troupe/stores/memory_entry.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

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

  /// Returns the session if it exists, as it is; creates it otherwise. Of
  /// several concurrent callers one creates it, and all get the same session.
  /// State and past events of the request count only for the creation. Fails
  /// like `get` and `create`, but not with `errc::already_exists`.
  pending<session> get_or_create(create_request request);

  /// The same with this initial state in place of the request's.
  pending<session> get_or_create(create_request request, json state);

  /// Returns the session with its events and state. Each event is included
  /// completely, in all scopes, or not at all. With `get_options::at` this
  /// holds at that revision; for `app:` and `user:` keys only where
  /// `session::shared_state_is_of_now` is false. Fails with `errc::not_found`,
  /// and as `get_options::at` says.
  pending<session> get(session_key key, get_options options = {});

  /// Creates a session of the same app and user that has the events of this one
  /// up to a revision, with their numbers and ids, and its own keys as they
  /// were there; keys of `user:` and `app:` are those of now. The events are
  /// shared and not copied: they need no space, and stay when one of the two
  /// sessions is removed (docs/time_travel.md has the costs). The fork's next
  /// event, by `system`, names its origin: `actions.agentState.forkedFrom`,
  /// `{"session": string, "revision": integer, "incarnation": integer}`. The
  /// session's artifacts up to the revision are shared, too, after the
  /// creation. Runs are not taken over. A blank `id` means a new UUID v4.
  ///
  /// Fails with `errc::not_found` if there is no such session or revision, or
  /// if the session is removed meanwhile, with `errc::already_exists` if the id
  /// is taken, with `errc::conflict` if the store lost events during each of
  /// three attempts, and with `errc::invalid_argument` over a store of your own
  /// that cannot fork (`store::can_fork`).
  pending<session>
  fork(session_key key, fork_options options = {}, std::string id = {});

  /// Follows the session: returns an object that delivers each of its events
  /// once, in order, without a gap between stored and new ones
  /// (runtime/follower.hpp). The call takes its place in the session's order: a
  /// follower that starts at the end gets each event that this thread appends
  /// to this runtime afterwards. `follower::next` returns the errors.
  follower follow(session_key key, follow_options options = {});

  /// Returns sessions of an app or of one user, newest update first, a page at
  /// a time. An empty page is no error. Fails with `errc::invalid_argument` for
  /// a limit of 0, and for a cursor that `list` did not return.
  pending<session_page> list(list_request request);

  /// Returns the names of the apps that have a user or a key, a page at a time,
  /// in the order of their bytes. Fails with `errc::invalid_argument` for a
  /// limit of 0, and over a store of your own that does not override
  /// `store::list_apps`.
  pending<name_page> list_apps(app_list_request request = {});

  /// Returns the names of an app's users, a page at a time, in the order of
  /// their bytes; also users without sessions. An unknown app has none. Fails
  /// with `errc::invalid_argument` for a limit of 0.
  pending<name_page> list_users(user_list_request request);

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

  /// Goes back: appends one event that sets the session's keys to their values
  /// at `target`, and takes back the events after it (runtime/rewind.hpp).
  /// Agents, models and open calls then see the conversation as it was there;
  /// `get` still shows all events, and `session.events().live()` those that are
  /// left. The session's artifacts go back with it (stores/artifact_view.hpp).
  /// `app:` and `user:` keys stay; the answer names them. Calls that were made
  /// after `target` cannot be answered any more, and those that were answered
  /// after it are open again.
  ///
  /// Fails with `errc::not_found` (no such session, revision or run),
  /// `errc::invalid_argument` (nothing is after `target`), `errc::conflict` (a
  /// run of this process is active: cancel it, wait for it, or set
  /// `rewind_options::cancel_runs`; the run was taken back already; or another
  /// revision than expected), and `errc::too_large` if the restored keys are
  /// larger than 64 events may be. The session does not change then.
  pending<rewound_session>
  rewind(session_key key, rewind_target target, rewind_options options = {});

  /// Deletes a session; returns whether it existed. Takes its place in the
  /// session's order: earlier appends are answered first, later ones fail with
  /// `errc::not_found`. Cancels the session's runs and removes its artifacts;
  /// user and app state stay. Fails with `errc::conflict`, and changes nothing,
  /// if a condition of `options` does not hold.
  pending<bool> remove(session_key key, remove_options options = {});

  /// Deletes the sessions of an app, or of one user, that have not been updated
  /// since a time, one after another, each as `remove` does. Returns their
  /// number. A session that is updated meanwhile stays. After a failure the
  /// others are left: call it again. Fails with `errc::invalid_argument` if no
  /// time is given.
  pending<std::uint64_t> expire(expiry_request request);

  /// Trims a session: deletes its events up to number `revision`. Its state and
  /// its revision stay, and so do the effects of the events on user and app,
  /// its artifacts, and the events that forks share. The session can then be
  /// read, rewound and forked at `revision` and later; earlier revisions fail
  /// with `errc::gone`. A run that is active goes on without the events. The id
  /// of a deleted event can be used again. Another process may show deleted
  /// events that it has in memory, until it asks the store for a deleted event
  /// or loads the session again. Does nothing if the session's first revision
  /// is `revision` or later.
  ///
  /// Fails with `errc::not_found` (no such session, or it has no such revision
  /// yet), with `errc::conflict` if the session was removed and made again,
  /// or its store lost events, during each of three attempts, and with
  /// `errc::invalid_argument` over a store that cannot trim
  /// (`store::can_trim`).
  pending<trimmed_session> trim(session_key key, std::uint64_t revision);

  /// Trims the sessions of an app, or of one user, one after another: deletes
  /// the events before the first one at or after a time. Returns the number of
  /// deleted events. A session that is updated meanwhile may be left for the
  /// next call. Fails like `trim`; sessions after a failure are left: call it
  /// again. Fails with `errc::invalid_argument` if no time is given.
  pending<std::uint64_t> expire_events(expiry_request request);

  /// Deletes all sessions, the state, the artifacts and the memory of a user.
  /// Returns whether there were sessions, state or memory.
  ///
  /// The memory goes first, then the state, then artifacts and the memory that
  /// was added meanwhile. So a user whose removal was cut off by a failure or a
  /// crash is either listed as before or has neither state nor memory left;
  /// call it again to remove the rest. With a memory service, the call takes
  /// its place in the order of calls only after the memory was removed.
  pending<bool> remove_user(std::string app, std::string user);

  /// Removes an app: the memory of its users, the users one after another, as
  /// `remove_user` does, then the app's keys and artifacts. Returns whether
  /// there was a user, a key or memory.
  ///
  /// Each user is removed whole or not at all, but the app is not: after a
  /// failure or a crash a part of it is left. Call it again to remove the rest.
  /// Until then the rest is listed, with one exception: an artifact of a
  /// removed user. Users and keys that others create meanwhile may stay. All
  /// keys are erased in one write, together with the ids of writes that the app
  /// remembers.
  pending<bool> remove_app(std::string app);

  /// Returns the keys of a user without their prefix, as an object:
  /// `{"theme": …}`. Empty if there are none.
  pending<json> user_state(std::string app, std::string user);

  /// Returns the keys of the app without their prefix. Empty if there are none.
  pending<json> app_state(std::string app);

  /// Returns a handle that reads and writes the state of an app, without a
  /// session (runtime/shared_state.hpp). The name is checked on use.
  shared_state state_of_app(std::string app);

  /// Returns a handle to the state of a user, who need not have a session.
  shared_state state_of_user(std::string app, std::string user);

  /// Adds a session to the memory of its user, with all events that are stored
  /// (`memory_service::add_session`). They replace the memories that an earlier
  /// call has made of it. Its memories outlive the session; `remove_user`
  /// removes them. Returns the number of its memories. Safe to repeat. If the
  /// session is removed meanwhile, its memories are removed as well, and the
  /// call fails with `errc::not_found`. Fails with `errc::not_found` if there
  /// is no such session, with `errc::invalid_argument` without a memory service
  /// (`runtime_options::memory`), and as the memory service does.
  pending<std::size_t> add_to_memory(session_key key);

  /// Adds these events of a session besides those that are remembered already
  /// (`memory_service::add_events`). Returns the number of new memories. Fails
  /// in the same way.
  pending<std::size_t> add_to_memory(session_key key,
                                     std::vector<event_ptr> events);

  /// Adds texts to the memory of the user of a session, which must exist
  /// (`memory_service::add`). The texts are of no session, and stay when the
  /// session is removed later. Returns the number of new memories. Fails in the
  /// same way.
  pending<std::size_t> add_to_memory(session_key key,
                                     std::vector<memory_entry> entries);

  /// Returns the calls of the session that paused runs wait for, oldest first,
  /// with the question of each: also those of runs in other processes. Each is
  /// answered by a run with the message of `allow`, `deny` or `answer`
  /// (agents/open_call.hpp). Reads the whole history. Fails with
  /// `errc::not_found`.
  pending<std::vector<open_call>> open_calls(session_key key);

  /// Returns a handle that reads and writes the state of one session
  /// (runtime/live_state.hpp). The key is checked on use.
  live_state state(session_key key);

  /// Returns a writer whose appends stop at the first failure
  /// (runtime/session_writer.hpp). The key is checked on use.
  session_writer writer(session_key key);

private:
  std::shared_ptr<detail::session_backend> backend_;
};

} // namespace troupe
