// The interface between the runtime and a storage back end. A store never
// computes. It writes changes that the owners have decided, all or nothing, and
// only if each scope is still at the revision that the owner decided on.

#pragma once

#include "troupe/core/event.hpp"
#include "troupe/core/key.hpp"
#include "troupe/core/state_map.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe {

/// Names an owner: an app, a user of an app, or a session.
struct owner_name {
  std::string app;          ///< Id of the app; never empty.
  std::string user = {};    ///< Empty for the app itself.
  std::string session = {}; ///< Empty for a user or an app.

  /// Returns the scope of this owner: `app`, `user` or `session`.
  scope where() const noexcept {
    return user.empty()      ? scope::app
           : session.empty() ? scope::user
                             : scope::session;
  }

  friend bool operator==(const owner_name&, const owner_name&) = default;
  friend auto operator<=>(const owner_name&, const owner_name&) = default;
};

/// For example `"press/ann/s1"`, for error messages.
std::string to_string(const owner_name& owner);

// -- writing ----

/// Effect of a change.
enum class change_kind : std::uint8_t {
  create, ///< Creates a session; its initial state is revision 0.
  append, ///< Appends one event to a session.
  write,  ///< Changes the scope of any owner, without an event. On a session it
          ///< takes a revision, too.
  remove, ///< Removes a session with its state and its events. The effects of
          ///< its events on its user and app stay.
  remove_user, ///< Removes a user, its state and all of its sessions.
  trim, ///< Deletes the oldest events of a session. Its state and its revision
        ///< stay, and so do the effects of its events on its user and app.
  close_runs, ///< Closes runs of a session (`store_change::runs`). It touches
              ///< no scope, and so nothing moves. It has no effect if the
              ///< session or the run is not there.
};

/// The past of a fork: events that a new session shares with another session of
/// the same user, its parent.
struct shared_past {
  /// Id of the parent.
  std::string session;
  /// Number of the newest shared event; the fork begins at this revision of the
  /// parent.
  std::uint64_t revision = 0;
  /// `stored_session::incarnation` of the parent, so that a session that was
  /// created again under its id is not taken for it; 0: any session of that id.
  std::uint64_t incarnation = 0;
};

/// The oldest revision that a trimmed session keeps.
struct kept_past {
  /// Number of the newest event to delete; the session can still be read at
  /// this revision, and at later ones. An earlier trim with a larger number
  /// stays in effect.
  std::uint64_t revision = 0;
  /// `stored_session::incarnation` of the session; 0: any session of that id.
  std::uint64_t incarnation = 0;
};

/// The holder from which a mark takes an open run.
struct former_holder {
  /// Its name, see `run_mark::holder`.
  std::string id;
  /// Set: it must be unknown to the store, or have been silent for longer than
  /// this, by the clock of the store.
  std::optional<std::chrono::microseconds> silent_for = {};
};

/// Opens or closes a run of a session. A run is open from the commit of its
/// message until the commit that closes it. A run whose process was killed
/// stays open.
struct run_mark {
  /// Id of the run's invocation; never empty, and unique in its session.
  std::string invocation_id;
  /// Name of the root agent. Not used by a mark that closes.
  std::string agent = {};
  /// Name of the process that has the run, see `store::renew_holder`. A mark
  /// that opens is also a sign of life of this holder. A mark that closes has
  /// no effect on a run that another holder has; empty: it closes the run of
  /// any holder.
  std::string holder = {};
  /// True: opens the run. If it is open already, this agent and this holder
  /// take the place of the former ones, and its time stays. False: closes it.
  bool opens = true;
  /// For a mark that opens. Set: the run opens only if every other open run of
  /// the session has this holder, or one that the store does not know or that
  /// has been silent for longer than this, by the clock of the store. If not,
  /// the commit writes nothing, and `commit_outcome::kept_out` names the run.
  /// Unset: the run opens beside any others.
  std::optional<std::chrono::microseconds> alone_after = {};
  /// For a mark that opens. Set: the run stays as it is unless it is open and
  /// this holder has it. Unset: the former holder does not matter here.
  std::optional<std::string> held_by = {};
  /// For a mark that opens. Set: the run must be open, this holder must have
  /// it, and be as silent as `former_holder` says. If not, the commit writes
  /// nothing, and `kept_out` has the run, with its own id as `other`.
  std::optional<former_holder> taken_from = {};
};

/// One change. It takes effect in every scope that it touches, or in none.
struct store_change {
  /// The effect; decides which fields are read.
  change_kind kind = change_kind::append;
  /// The session to create, append to or remove, the user to remove, or the
  /// owner of the scope to write.
  owner_name owner;
  /// The event to store. For `create`, `write` and `trim` it carries only the
  /// `state_delta` and the time. Its delta holds only sets and erases, and no
  /// `temp:` key. Null for removals.
  event_ptr event;
  /// The revision that the scope has after the change; unset if the change does
  /// not touch that scope. The stored revision must be one less; otherwise the
  /// scope has moved. It is 0 for a session that is created, or that of `past`,
  /// and that session must not exist. A removal leaves the other two unset, and
  /// this one, too, unless the session must be at the revision one less. A
  /// session that is removed must exist.
  std::optional<std::uint64_t> session_revision;
  /// Revision of the user's scope, by the same rules.
  std::optional<std::uint64_t> user_revision;
  /// Revision of the app's scope, by the same rules.
  std::optional<std::uint64_t> app_revision;
  /// For `create`: the session is a fork. It has the events of the parent up to
  /// that revision, with their numbers and ids, also after the parent was
  /// removed. `event` carries all keys that the parent had there, and the
  /// newest time of the changes up to there. If the parent does not exist, is
  /// another incarnation or is not at that revision yet, the parent has moved.
  /// Only for stores that can fork (`store::can_fork`).
  std::optional<shared_past> past = {};
  /// For `trim`: the part of the history that stays. `event` carries all keys
  /// that the session had at that revision, and the newest time of the changes
  /// up to there. All revisions are unset. If the session does not exist, is
  /// another incarnation or is not at that revision yet, it has moved. Forks
  /// keep the events that they share. Only for stores that can trim
  /// (`store::can_trim`).
  std::optional<kept_past> kept = {};
  /// For `create`, `append` and `write` of a session, and for `close_runs`:
  /// runs of the session that the change opens or closes, in this order. For
  /// `close_runs` they close, or get another holder; `event` is null, and all
  /// revisions are unset. The removal of a session or of its user removes its
  /// open runs, and a fork begins with none. Only for stores that can list runs
  /// (`store::can_list_runs`).
  std::vector<run_mark> runs = {};
};

/// A run that may not open, since another run of its session is open
/// (`run_mark::alone_after`), or since it cannot be taken from its former
/// holder (`run_mark::taken_from`).
struct kept_out_run {
  owner_name session;        ///< Session of both runs.
  std::string invocation_id; ///< Id of the run that was to be opened.
  /// Id of an open run that keeps it out; its own id if it cannot be taken.
  std::string other;
};

/// The outcome of a commit that did not fail.
struct commit_outcome {
  /// Owners whose stored revision is not the one that the changes build on,
  /// because another process has changed them. If it is empty, all changes
  /// are written, and durable as far as the store promises. If not, nothing
  /// is written.
  ///
  /// An owner that another process has removed is named too, once, unless
  /// `changed_elsewhere` has reported the removal: an owner of that name that
  /// exists now is a new one.
  std::vector<owner_name> moved;
  /// Runs that may not open. If there are any, nothing is written. A store may
  /// leave them out of an outcome that names moved owners.
  std::vector<kept_out_run> kept_out = {};
};

/// An owner that another process has changed.
struct moved_owner {
  /// The owner that was changed or removed.
  owner_name owner;
  /// The newest stored revision; unset if the owner was removed.
  std::optional<std::uint64_t> revision;
};

// -- reading ----

/// The state of one owner, as stored.
struct stored_scope {
  /// The keys without prefix.
  state_map keys;
  /// Number of the last change; 0 before the first change.
  std::uint64_t revision = 0;
};

/// Limits of the history that is loaded with a session.
struct load_options {
  /// Maximum number of newest events to load with a session.
  std::size_t events_max = 128;
  /// Maximum number of newest events whose id hashes to load.
  std::size_t ids_max = 4'096;
  /// Neither events up to this number nor their ids are loaded, because the
  /// caller has them. It may be larger than the session's revision.
  std::uint64_t after = 0;
};

/// A session and the newest part of its history.
struct stored_session {
  /// The session's keys. The revision is 0 after the creation, or that of the
  /// past of a fork, plus 1 per event and per `change_kind::write`.
  stored_scope scope;
  /// The latest time of the session's changes, even if a later change has an
  /// earlier time.
  timestamp last_update_time{};
  /// The newest events, oldest first, at most `load_options::events_max`. An
  /// event's number is the revision that it made. So, if no `write` changed the
  /// session, the numbers have no gaps and the last one is `scope.revision`.
  std::vector<event_ptr> events;
  /// `id_hash` of the ids of the newest events, oldest first, at
  /// most `load_options::ids_max`.
  std::vector<std::uint32_t> id_hashes;
  /// Number of the session, which no other session of the location has or had,
  /// so that one that was removed and created again is recognised. 0: the store
  /// has no such numbers; readers that follow a session then compare its events
  /// alone.
  std::uint64_t incarnation = 0;
  /// The oldest revision that can be read; 0 unless the session was trimmed.
  /// Older events are gone, also from `events` and `id_hashes`.
  std::uint64_t first_revision = 0;
};

/// The keys of a session's user and app at an earlier moment, without prefix.
struct earlier_shared_state {
  state_map user; ///< Keys of the user.
  state_map app;  ///< Keys of the app.
};

/// A position in a list; the next page starts after this row.
struct row_position {
  /// Time of the row; rows of the same time are ordered by the ids.
  timestamp last_update_time{};
  std::string user;    ///< Id of the row's user.
  std::string session; ///< Id of the row's session.
};

/// A query for one page of an app's sessions.
struct row_query {
  std::string app;                      ///< Id of the app to list.
  std::optional<std::string> user = {}; ///< Unset for all users of the app.
  /// Maximum number of rows.
  std::size_t limit = 100;
  /// The page starts behind this position; unset for the first page. A session
  /// with this position need not exist.
  std::optional<row_position> behind = {};
};

/// A query for sessions of an app in the order of their names.
struct name_query {
  std::string app;                      ///< Id of the app to list.
  std::optional<std::string> user = {}; ///< Unset for all users of the app.
  /// Maximum number of rows.
  std::size_t limit = 100;
  /// The rows start after this session, which need not exist; unset for the
  /// first rows. The app of the key is ignored.
  std::optional<session_key> behind = {};
};

/// A query for names of apps, in the order of their bytes.
struct app_query {
  /// Maximum number of names.
  std::size_t limit = 100;
  /// The names start after this one, which need not exist; empty for the first
  /// names.
  std::string behind = {};
};

/// A query for names of the users of an app, in the order of their bytes.
struct user_query {
  std::string app; ///< Id of the app whose users are listed.
  /// Maximum number of names.
  std::size_t limit = 100;
  /// The names start after this one, which need not exist; empty for the first
  /// names.
  std::string behind = {};
};

/// One session of a list, with the state of its user and app at the
/// same moment.
struct session_row {
  /// Names of the app, the user and the session.
  session_key key;
  state_map session; ///< The session's keys, without prefix.
  state_map user;    ///< The user's keys, without prefix.
  state_map app;     ///< The app's keys, without prefix.
  /// Revision of the session's scope; those of user and app are not listed.
  std::uint64_t revision = 0;
  /// The time that orders the list, as in `stored_session`.
  timestamp last_update_time{};
};

/// A position in a list of runs; the next page starts after this run.
struct run_position {
  timestamp opened{}; ///< Time of the run; runs of one time follow by id.
  std::string invocation_id; ///< Id of the run.
  session_key key;           ///< Session of the run.
};

/// A query for open runs, the oldest first.
struct run_query {
  /// Only runs of this app; empty: of all apps.
  std::string app = {};
  /// Only runs of this session. `app` is then not used.
  std::optional<session_key> session = {};
  /// Maximum number of runs.
  std::size_t limit = 100;
  /// The page starts behind this position; unset for the first page. A run with
  /// this position need not exist.
  std::optional<run_position> behind = {};
};

/// An open run.
struct open_run {
  session_key key;           ///< Session of the run.
  std::string invocation_id; ///< Id of the run's invocation.
  std::string agent;         ///< Name of the root agent.
  std::string holder;        ///< Name of the process that has the run.
  timestamp opened{};        ///< Time of the commit, by the clock of the store.
  /// Time since the last sign of life of the holder, by the clock of the store.
  /// Unset if the store does not know the holder (`store::remove_holder`).
  std::optional<std::chrono::microseconds> silent;
};

/// Returns the position of a run in a list.
run_position position_of(const open_run& listed);

/// Reports commits that the back end had confirmed and no longer has.
/// Causes are a server that lost its last commits, a restored backup and a
/// replaced file.
struct lost_history {
  /// Number of this process's commits that are missing, as far as they can
  /// be counted.
  std::uint64_t commits = 0;
  /// One sentence for the operator: which back end, and its loss.
  std::string warning;
};

/// Hashes an event id to 31 bits. Stores keep the hash, so the function
/// never changes.
std::uint32_t id_hash(std::string_view id) noexcept;

// -- the store ----

/// Keeps scopes and events beyond the process. Derive from it to add a back
/// end, and test that with stores/conformance/suite.hpp; docs/stores.md lists
/// the rules.
///
/// All calls block. `commit`, `changed_elsewhere`, `take_lost_history`,
/// `renew_holder`, `remove_holder` and `close` are called by one thread at a
/// time; loads come from any number of threads at the same time. A load sees
/// every commit that returned before the load began, and sees each change whole
/// or not at all.
///
/// Failures: `errc::store_failed` names the attempt and quotes the back end.
/// The outcome of a failed commit is unknown; load the owner to find out.
/// `errc::corrupt` means that stored data cannot be read back. A store recovers
/// by itself: calls succeed again as soon as the back end does.
class store {
public:
  virtual ~store() = default;

  /// Writes all changes in order, or none of them. A change may build on an
  /// earlier change of the same call.
  virtual result<commit_outcome> commit(std::span<const store_change> changes)
    = 0;

  /// Returns the owners that other processes have changed since the last call,
  /// as far as that is cheap to find out. A store that no other process can
  /// reach returns none. Commits compare revisions by themselves and do not
  /// depend on this call.
  virtual result<std::vector<moved_owner>> changed_elsewhere() = 0;

  /// Loads the scope of an app or a user; nothing if the owner does not exist.
  /// An owner exists once it, or a session below it, was written.
  virtual result<std::optional<stored_scope>>
  load_scope(const owner_name& owner) = 0;

  /// Loads a session; nothing if it does not exist.
  virtual result<std::optional<stored_session>>
  load_session(const session_key& key, const load_options& options) = 0;

  /// Loads the events with the numbers `first` (counted from 1) to `last`,
  /// both included, oldest first, as far as they exist; none if the session
  /// does not exist. Fails with `errc::gone` if the session was trimmed and
  /// `first` is not behind `stored_session::first_revision`.
  virtual result<std::vector<event_ptr>>
  load_events(const session_key& key, std::uint64_t first, std::uint64_t last)
    = 0;

  /// Loads a session as it was at `revision`: its keys, its newest `events_max`
  /// events up to there, and the newest time of its changes up to there. Loads
  /// no id hashes. Returns nothing if the session does not exist. Fails with
  /// `errc::not_found` if the session is not at that revision yet, and with
  /// `errc::gone` if it was trimmed to a later one. The default
  /// fails with `errc::invalid_argument`, since no other call finds the state
  /// at the creation; a store that keeps it overrides this.
  virtual result<std::optional<stored_session>> load_session_at(
    const session_key& key, std::uint64_t revision, std::size_t events_max);

  /// Loads the state of a session's user and app as it was when the session
  /// came to `revision`: the effects of all changes that were committed before,
  /// and of the change that made the revision. Returns nothing if the store
  /// does not keep the history of users and apps, if the session does not
  /// exist, or if it is not at that revision yet. The default returns nothing;
  /// sessions at an earlier revision are then shown with the present state.
  virtual result<std::optional<earlier_shared_state>>
  load_shared_state_at(const session_key& key, std::uint64_t revision);

  /// Finds events of a session by id. Returns one result per id, in the order
  /// of `ids`; null for an id that no event has, or only one that is gone. The
  /// default reads all events
  /// of the session, oldest first, until every id is found; a store with an
  /// index of ids overrides it.
  virtual result<std::vector<event_ptr>>
  find_events(const session_key& key, std::span<const std::string> ids);

  /// Returns true if `commit` creates forks (`store_change::past`). The default
  /// returns false: sessions of such a store cannot be forked.
  virtual bool can_fork() const noexcept { return false; }

  /// Returns true if `commit` trims sessions (`store_change::kept`). The
  /// default returns false: the events of such a store stay as long as their
  /// session.
  virtual bool can_trim() const noexcept { return false; }

  /// Returns true if the store keeps open runs (`store_change::runs`). The
  /// default returns false: runs of killed processes are then not found.
  virtual bool can_list_runs() const noexcept { return false; }

  /// Lists open runs by time, then by id, then by session, all compared as
  /// bytes. The default fails with `errc::invalid_argument`. Fails like `list`
  /// otherwise.
  virtual result<std::vector<open_run>> list_runs(const run_query& query);

  /// Notes a sign of life of a process that has open runs, with the time of the
  /// store. `id` is unique among all processes, and not empty. Changes nothing
  /// that another call shows. The default fails with `errc::invalid_argument`.
  virtual result<void> renew_holder(const std::string& id);

  /// Forgets a holder that closes the store, has died, or is the name of runs
  /// that were left: they have none (`open_run::silent`). The default
  /// fails with `errc::invalid_argument`.
  virtual result<void> remove_holder(const std::string& id);

  /// Reports commits that the back end has lost since the last call; unset
  /// if there are none. The committing thread calls it after each `commit`
  /// and `changed_elsewhere`.
  ///
  /// A store that finds lost commits during `commit` writes nothing and names
  /// the owners of all changes as moved. The caller then loads every owner
  /// again. The default is for back ends that cannot lose a confirmed commit
  /// while the process lives.
  virtual std::optional<lost_history> take_lost_history() {
    return std::nullopt;
  }

  /// Lists sessions: newest update first, then by user, then by session id.
  virtual result<std::vector<session_row>> list(const row_query& query) = 0;

  /// Lists sessions by user, then by session id; both are compared as bytes.
  /// Updates do not change this order, so a long walk meets each session once.
  /// The default sorts one `list` of all sessions; a store with an index of
  /// names overrides it. Fails like `list`.
  virtual result<std::vector<session_row>>
  list_by_name(const name_query& query);

  /// Lists the users of an app that exist, compared as bytes; those without
  /// sessions, too. The default reads all sessions of the app, and finds only
  /// users with sessions; a store that can find users by name overrides it.
  /// Fails like `list`.
  virtual result<std::vector<std::string>> list_users(const user_query& query);

  /// Lists the apps that have a user or a key, compared as bytes. The default
  /// fails with `errc::invalid_argument`, since no other call finds apps; a
  /// store that can find them overrides it. Fails like `list` otherwise.
  virtual result<std::vector<std::string>> list_apps(const app_query& query);

  /// Searches for damage: reads everything and compares each scope with the
  /// replay of its log. `on_progress` receives the finished share, 0 to 1.
  /// Returns one line per finding; empty if there is no damage.
  virtual result<std::vector<std::string>>
  check(const std::function<void(double done)>& on_progress) = 0;

  /// Prepares the location for the next opening. No call follows it.
  virtual result<void> close() = 0;
};

} // namespace troupe

/// Hashes all fields of an owner's name.
template <>
struct std::hash<troupe::owner_name> {
  /// Returns a hash for tables in memory. It is never stored.
  std::size_t operator()(const troupe::owner_name& owner) const noexcept;
};
