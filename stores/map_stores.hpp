// Whole maps by name, one per app, user and session, for programs that need no
// events.
//
// Any `store` offers them, and three user-defined ones, such as those of a
// program that has its own database, make a `store`. A map is a JSON object;
// its keys are bare names without a prefix.

#pragma once

#include "troupe/core/environment.hpp"
#include "troupe/stores/store.hpp"

#include <memory>
#include <optional>
#include <string>

namespace troupe {

/// The map of each app. All calls fail as the back end does, with
/// `errc::store_failed` or `errc::corrupt`.
class app_state_store {
public:
  virtual ~app_state_store() = default;

  /// Loads the map; nothing if there is none.
  virtual result<std::optional<json>> load(const std::string& app) = 0;

  /// Replaces the map.
  virtual result<void> save(const std::string& app, const json& map) = 0;

  /// Removes the map. Succeeds if there is none.
  virtual result<void> remove(const std::string& app) = 0;
};

/// The map of each user of an app; the rules are those of `app_state_store`.
class user_state_store {
public:
  virtual ~user_state_store() = default;

  /// Loads the map of a user; nothing if there is none.
  virtual result<std::optional<json>> load(const std::string& app,
                                           const std::string& user)
    = 0;

  /// Replaces the map of a user.
  virtual result<void>
  save(const std::string& app, const std::string& user, const json& map) = 0;

  /// Removes the map of a user. Succeeds if there is none.
  virtual result<void> remove(const std::string& app, const std::string& user)
    = 0;
};

/// The map of each session; the rules are those of `app_state_store`.
class session_store {
public:
  virtual ~session_store() = default;

  /// Loads the map of a session; nothing if there is none.
  virtual result<std::optional<json>> load(const session_key& key) = 0;

  /// Replaces the map of a session.
  virtual result<void> save(const session_key& key, const json& map) = 0;

  /// Removes the map of a session. Succeeds if there is none.
  virtual result<void> remove(const session_key& key) = 0;
};

/// The three map stores of one store.
struct map_stores {
  std::unique_ptr<app_state_store> apps;   ///< The map of each app.
  std::unique_ptr<user_state_store> users; ///< The map of each user.
  std::unique_ptr<session_store> sessions; ///< The map of each session.
};

/// Shows the scopes of `kept` as maps. `save` writes the difference to the
/// stored map, as sets and erases on the newest revision. A null in a map means
/// that the key does not exist. A save that changes nothing writes nothing. In
/// a session that exists, any other save is an event by `system`.
///
/// Apps and users exist as long as they have sessions. Their empty map
/// therefore loads as nothing, and `remove` only erases the keys. The first
/// `save` creates a session, without an event; `remove` removes it with its
/// events.
///
/// Fails with `errc::invalid_argument` on an id or a key against the rules of
/// core/key.hpp, on a map that is not an object and on a value that
/// `check_json` refuses, with `errc::too_large` on a value above the limit,
/// with `errc::busy` if other writers interfered on every attempt, and as
/// `kept` does. Both arguments must outlive the result. The threading rules are
/// those of `store`.
map_stores make_map_stores(store& kept, environment& clock);

/// Makes a store from three map stores. They must outlive the store, which
/// calls them from one thread at a time.
///
/// A map holds the scope's keys and, under the reserved name `__troupe`, the
/// data that troupe needs besides:
///
///     app      {"revision": 3, "users": ["ann"]}
///     user     {"revision": 2, "sessions": ["s1"]}
///     session  {"revision": 1, "updated": µs,
///               "events": [{"number": 1, "time": µs, "event": {…}}]}
///
/// The maps of apps and users may also have the reserved keys `__write/0` to
/// `__write/63`, which are the ids of writes without a session. Times are
/// microseconds since 1970; events have ADK's wire form. A map
/// without `__troupe` is a scope at revision 0; `list` does not find such a
/// session.
///
/// The store is not atomic: a commit saves one map after the other, so a commit
/// that fails or is killed half-way leaves the earlier maps written. The app is
/// saved first and the session last. So a stored event has all of its effects,
/// but a retried event may take effect twice in user and app.
///
/// Use it from one process at a time: a map that another process saves between
/// load and save is lost, and `changed_elsewhere` reports nothing. Each commit
/// saves whole maps, and a session's map holds all of its events, so long
/// sessions become slow. `check` cannot enumerate the maps and finds nothing.
std::unique_ptr<store> compose_store(app_state_store& apps,
                                     user_state_store& users,
                                     session_store& sessions);

} // namespace troupe
