// Where owners keep their scopes: all that the runtime asks of a store.
//
// A store never computes. It writes what the owners have decided, whole or not
// at all, and only on top of the revisions that they decided it on.

#pragma once

#include "troupe/core/event.hpp"
#include "troupe/core/key.hpp"
#include "troupe/core/state_map.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe {

/// An owner by name: an app, a user of it, or a session.
struct owner_name {
  std::string app;
  std::string user = {};    ///< Empty: the app itself.
  std::string session = {}; ///< Empty: the user, or the app.

  scope where() const noexcept {
    return user.empty()      ? scope::app
           : session.empty() ? scope::user
                             : scope::session;
  }

  friend bool operator==(const owner_name&, const owner_name&) = default;
  friend auto operator<=>(const owner_name&, const owner_name&) = default;
};

/// `"press/ann/s1"`, for messages.
std::string to_string(const owner_name& owner);

// -- what is written
// -----------------------------------------------------------

enum class change_kind : std::uint8_t {
  create, ///< A session with its initial state, which is its revision 0.
  append, ///< One event of a session.
  write,  ///< Changes the owner's own scope without an event; of any owner.
  remove, ///< A session, its state and its events. What its events did to its
          ///< user and app stays.
  remove_user, ///< A user, its state and all of its sessions.
};

/// One transaction: takes place in every scope that it touches, or in none.
struct store_change {
  change_kind kind = change_kind::append;
  owner_name owner;
  /// `append`: the event as it is kept. `create` and `write`: carries the
  /// `state_delta` alone, and the time. Its delta holds sets and erases only,
  /// and no `temp:`. Null for removals.
  event_ptr said;
  /// The revision that the change makes in each scope that it touches; unset
  /// in the others. It builds on the one before: where that is not the stored
  /// one, the scope has moved. 0 in the session that is created, which must not
  /// exist. What is removed needs none; a session that is removed must exist.
  std::optional<std::uint64_t> session_revision;
  std::optional<std::uint64_t> user_revision;
  std::optional<std::uint64_t> app_revision;
};

/// What came of a commit that did not fail.
struct commit_outcome {
  /// Empty: everything is written, and durable as far as the store promises.
  /// Otherwise nothing is written: these owners' scopes are at other revisions
  /// than the changes build on, because another process has changed them. Or
  /// one has removed them, which neither a commit nor `changed_elsewhere` has
  /// told of before: what is there now is something else of that name.
  std::vector<owner_name> moved;
};

/// An owner that was changed from elsewhere.
struct moved_owner {
  owner_name owner;
  /// The newest that is stored; unset when the owner was removed.
  std::optional<std::uint64_t> revision;
};

// -- what is read
// --------------------------------------------------------------

struct stored_scope {
  state_map keys;
  std::uint64_t revision = 0;
};

struct load_options {
  /// Newest events to load with a session.
  std::size_t events_max = 128;
  /// Newest events whose ids to load, as hashes.
  std::size_t ids_max = 4'096;
};

struct stored_session {
  stored_scope scope; ///< Its revision is the number of its newest event.
  timestamp last_update_time{};
  /// The newest events, oldest first; the last is number `scope.revision`.
  std::vector<event_ptr> events;
  /// `id_hash` of the newest events' ids, oldest first.
  std::vector<std::uint32_t> id_hashes;
};

/// Where a page of rows starts: behind this row.
struct row_position {
  timestamp last_update_time{};
  std::string user;
  std::string session;
};

struct row_query {
  std::string app;
  std::optional<std::string> user = {}; ///< Unset: all users of the app.
  std::size_t limit = 100;
  std::optional<row_position> behind = {};
};

/// One session of a list, with the state of its user and app at the same
/// moment.
struct session_row {
  session_key key;
  state_map session;
  state_map user;
  state_map app;
  std::uint64_t revision = 0;
  timestamp last_update_time{};
};

/// Commits that the back end had confirmed and does not have any more: a server
/// that lost its last commits, a restored backup, a replaced file.
struct lost_history {
  /// Commits of this process that are missing, as far as they can be counted.
  std::uint64_t commits = 0;
  /// One sentence for the operator: which back end, and what it lost.
  std::string warning;
};

/// A hash of an event id that never changes, of 31 bits: stores keep it.
std::uint32_t id_hash(std::string_view id) noexcept;

// -- the store
// -----------------------------------------------------------------

/// A place that outlives the process; derive from it to bring one's own, and
/// run the checks of stores/conformance.hpp on it.
///
/// All calls block. `commit`, `changed_elsewhere` and `close` are called by one
/// thread at a time; the loads from any number of threads, beside those. A load
/// sees every commit that returned before it began, all of a change or none of
/// it.
///
/// Failures: `errc::store_failed` with what was being attempted and the back
/// end's own words (a commit's outcome is then unknown: a load tells);
/// `errc::corrupt` when what is stored does not read back. A store recovers by
/// itself: later calls work again as soon as its back end does.
class store {
public:
  virtual ~store() = default;

  /// Writes all of the changes, in their order, or none of them. Within one
  /// call a change may build on an earlier one.
  virtual result<commit_outcome> commit(std::span<const store_change> changes)
    = 0;

  /// The owners that others have changed since the last call, as far as known
  /// without much ado; a store that nobody else can reach has none. No commit
  /// depends on it.
  virtual result<std::vector<moved_owner>> changed_elsewhere() = 0;

  /// The scope of an app or a user, or nothing if there is no such owner: it
  /// exists once it, or a session below it, was written.
  virtual result<std::optional<stored_scope>>
  load_scope(const owner_name& owner) = 0;

  /// A session, or nothing if it does not exist.
  virtual result<std::optional<stored_session>>
  load_session(const session_key& key, const load_options& options) = 0;

  /// The events number `first` (from 1) to `last` of a session, as far as they
  /// exist; nothing if the session does not.
  virtual result<std::vector<event_ptr>>
  load_events(const session_key& key, std::uint64_t first, std::uint64_t last)
    = 0;

  /// For each of `ids`, the event of the session that has it; null where none
  /// has. As many results as ids. The default reads all events of the session;
  /// a store with an index of ids overrides it.
  virtual result<std::vector<event_ptr>>
  find_events(const session_key& key, std::span<const std::string> ids);

  /// What the back end has lost since the last call; unset for nothing. Called
  /// by the thread that commits, after each `commit` and `changed_elsewhere`.
  ///
  /// A store that finds lost commits writes nothing in the call that finds
  /// them: that commit names the owners of all its changes as moved. The caller
  /// then loads every owner again. The default is for back ends that cannot
  /// lose what they confirmed while the process lives.
  virtual std::optional<lost_history> take_lost_history() {
    return std::nullopt;
  }

  /// Sessions, newest update first, then by user and id.
  virtual result<std::vector<session_row>> list(const row_query& query) = 0;

  /// Looks for damage: reads everything, and compares each scope with what its
  /// log replays to. `on_progress` gets the share that is done, 0 to 1. One
  /// line per finding, empty when all is sound.
  virtual result<std::vector<std::string>>
  check(const std::function<void(double done)>& on_progress) = 0;

  /// Puts things in order for the next opening; nothing is called after it.
  virtual result<void> close() = 0;
};

} // namespace troupe

template <>
struct std::hash<troupe::owner_name> {
  std::size_t operator()(const troupe::owner_name& owner) const noexcept;
};
