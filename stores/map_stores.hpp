// Whole maps by name, for programs that only want to keep some: of an app, of a
// user, of a session.
//
// Any `store` offers them, and three of one's own make a store
// (composed_store.hpp). A map is a JSON object; its keys are bare names,
// without a prefix.

#pragma once

#include "troupe/core/environment.hpp"
#include "troupe/stores/store.hpp"

#include <memory>
#include <optional>
#include <string>

namespace troupe {

/// The map of each app. Fails as its back end does, with `errc::store_failed`
/// or `errc::corrupt`.
class app_state_store {
public:
  virtual ~app_state_store() = default;

  /// The map, or nothing.
  virtual result<std::optional<json>> load(const std::string& app) = 0;

  /// Replaces the map.
  virtual result<void> save(const std::string& app, const json& map) = 0;

  /// Afterwards there is nothing; also if there was nothing before.
  virtual result<void> remove(const std::string& app) = 0;
};

/// The map of each user of an app; as `app_state_store`.
class user_state_store {
public:
  virtual ~user_state_store() = default;

  virtual result<std::optional<json>> load(const std::string& app,
                                           const std::string& user)
    = 0;

  virtual result<void>
  save(const std::string& app, const std::string& user, const json& map) = 0;

  virtual result<void> remove(const std::string& app, const std::string& user)
    = 0;
};

/// The map of each session; as `app_state_store`.
class session_store {
public:
  virtual ~session_store() = default;

  virtual result<std::optional<json>> load(const session_key& key) = 0;

  virtual result<void> save(const session_key& key, const json& map) = 0;

  virtual result<void> remove(const session_key& key) = 0;
};

/// The three that a store offers.
struct map_stores {
  std::unique_ptr<app_state_store> apps;
  std::unique_ptr<user_state_store> users;
  std::unique_ptr<session_store> sessions;
};

/// The maps of `kept`: the same scopes that its sessions work on. `save` writes
/// what differs, as sets and erases, on top of whatever is stored by then. A
/// null in a map is a key that is not there. In a session it is an event by
/// `system`.
///
/// Apps and users exist for as long as they have sessions, so an empty map of
/// theirs loads as nothing, and `remove` takes the keys alone. A session is
/// created by its first `save`; `remove` takes its events along.
///
/// Fails with `errc::invalid_argument` on an id or a key against the rules of
/// core/key.hpp and on a map that is no object, `errc::too_large` on a value
/// above the limit, `errc::busy` if others wrote each time between reading and
/// writing, and as `kept` does. Both arguments must outlive what is returned;
/// calls come as `store` asks for them.
map_stores make_map_stores(store& kept, environment& clock);

} // namespace troupe
