#include "troupe/stores/map_stores.hpp"

#include "troupe/core/support/recent_writes.hpp"

#include <fmt/format.h>

#include <functional>
#include <utility>

namespace troupe {

namespace {

using load_function = std::function<result<std::optional<stored_scope>>()>;

// Checks a whole map and drops the nulls.
result<json> check_map(const json& map, scope where) {
  if (!map.is_object())
    return error(errc::invalid_argument, "a map must be an object");
  const auto bytes_max = size_limits().value_bytes_max;
  auto checked = json::object();
  for (const auto& [name, data] : map.get_ref<const json::object_t&>()) {
    const auto full = join_key(where, name);
    auto key = check_key(full);
    if (!key)
      return key.error();
    if (key->where != where)
      return error(errc::invalid_argument,
                   fmt::format("key '{}' of a session's map has the prefix of "
                               "another scope",
                               name));
    auto bytes = check_json(data, fmt::format("value of '{}'", full));
    if (!bytes)
      return bytes.error();
    if (*bytes > bytes_max)
      return error(errc::too_large,
                   fmt::format("the value of '{}' has {} bytes, the limit is "
                               "{}",
                               full,
                               *bytes,
                               bytes_max));
    if (!data.is_null())
      checked[name] = data;
  }
  return checked;
}

json map_of(const state_map& keys) {
  auto map = json::object();
  keys.for_each([&map](std::string_view name, const value& data) {
    map[std::string(name)] = data.data();
  });
  return map;
}

// Returns the delta that turns `before` into `after`.
result<delta>
difference(const state_map& before, const json& after, scope where) {
  auto changed = json::object();
  for (const auto& [name, data] : after.get_ref<const json::object_t&>()) {
    const auto* found = before.find(name);
    if (!found || !equal(found->data(), data)
        || found->data().type() != data.type())
      changed[join_key(where, name)] = data;
  }
  before.for_each([&](std::string_view name, const value&) {
    if (!after.contains(name))
      changed[join_key(where, name)] = nullptr;
  });
  return delta::from_json(changed);
}

result<owner_name> check_owner(const std::string& app,
                               const std::string* user = nullptr) {
  owner_name owner;
  auto app_id = check_id(app, "app");
  if (!app_id)
    return app_id.error();
  owner.app = std::move(*app_id);
  if (!user)
    return owner;
  auto user_id = check_id(*user, "user");
  if (!user_id)
    return user_id.error();
  owner.user = std::move(*user_id);
  return owner;
}

// The scopes of a store as maps.
class scope_maps {
public:
  scope_maps(store& kept, environment& clock) : kept_(kept), clock_(clock) {}

  result<std::optional<json>> load(const owner_name& owner) {
    auto found = load_scope(owner);
    if (!found)
      return found.error();
    // An app or a user without keys exists only because of its sessions.
    if (!*found
        || (owner.where() != scope::session && (*found)->keys.size() == 0))
      return std::nullopt;
    return map_of((*found)->keys);
  }

  result<void> save(const owner_name& owner, const json& map) {
    auto checked = check_map(map, owner.where());
    if (!checked)
      return checked.error();
    return commit(owner, [&](const std::optional<stored_scope>& found) {
      return make_write(owner, found, *checked);
    });
  }

  result<void> remove_session(const owner_name& owner) {
    return commit(owner, [&](const std::optional<stored_scope>& found) {
      std::optional<store_change> change;
      if (found) {
        change.emplace();
        change->kind = change_kind::remove;
        change->owner = owner;
      }
      return change;
    });
  }

private:
  // A writer that loses so many races in a row has met a store that accepts
  // nothing.
  static constexpr int attempts_max = 1'000;

  // Loads only the keys and the revision. A save keeps the remembered writes,
  // because it does not see them.
  result<std::optional<stored_scope>> load_scope(const owner_name& owner) {
    if (owner.where() != scope::session) {
      auto wider = kept_.load_scope(owner);
      if (wider && *wider)
        hide_recent_writes((*wider)->keys);
      return wider;
    }
    auto found = kept_.load_session({owner.app, owner.user, owner.session},
                                    {.events_max = 0, .ids_max = 0});
    if (!found)
      return found.error();
    if (!*found)
      return std::nullopt;
    return std::move((*found)->scope);
  }

  // Returns the change that leads from `found` to `map`; nothing if they are
  // equal.
  std::optional<store_change>
  make_write(const owner_name& owner,
             const std::optional<stored_scope>& found,
             const json& map) {
    const auto where = owner.where();
    const bool creates = where == scope::session && !found;
    const auto before = found.value_or(stored_scope());
    auto changed = difference(before.keys, map, where);
    if (!creates && changed->empty())
      return std::nullopt;
    event said;
    said.timestamp = clock_.now();
    said.actions.state_delta = std::move(*changed);
    store_change change;
    change.owner = owner;
    change.kind = creates ? change_kind::create : change_kind::write;
    if (where == scope::session && !creates) {
      // A session changes by an event, because its revision is the number of
      // its newest event.
      change.kind = change_kind::append;
      said.author = "system";
      said.id = clock_.new_id();
      said.invocation_id = "e-" + clock_.new_id();
    }
    change.event = std::make_shared<const event>(std::move(said));
    auto& revision = where == scope::app    ? change.app_revision
                     : where == scope::user ? change.user_revision
                                            : change.session_revision;
    revision = creates ? 0 : before.revision + 1;
    return change;
  }

  // Loads, lets `make` decide, and commits. Repeats if another writer came in
  // between.
  template <class Make>
  result<void> commit(const owner_name& owner, const Make& make) {
    for (int attempt = 0; attempt < attempts_max; ++attempt) {
      auto found = load_scope(owner);
      if (!found)
        return found.error();
      const std::optional<store_change> change = make(*found);
      if (!change)
        return {};
      auto outcome = kept_.commit({&*change, 1});
      if (!outcome)
        return outcome.error();
      if (outcome->moved.empty())
        return {};
    }
    return error(
      errc::busy,
      fmt::format(
        "save the map of {}: other writers interfered on every attempt",
        to_string(owner)));
  }

  store& kept_;
  environment& clock_;
};

class apps_of_store : public app_state_store {
public:
  explicit apps_of_store(scope_maps maps) : maps_(maps) {}

  result<std::optional<json>> load(const std::string& app) override {
    auto owner = check_owner(app);
    if (!owner)
      return owner.error();
    return maps_.load(*owner);
  }

  result<void> save(const std::string& app, const json& map) override {
    auto owner = check_owner(app);
    if (!owner)
      return owner.error();
    return maps_.save(*owner, map);
  }

  result<void> remove(const std::string& app) override {
    return save(app, json::object());
  }

private:
  scope_maps maps_;
};

class users_of_store : public user_state_store {
public:
  explicit users_of_store(scope_maps maps) : maps_(maps) {}

  result<std::optional<json>> load(const std::string& app,
                                   const std::string& user) override {
    auto owner = check_owner(app, &user);
    if (!owner)
      return owner.error();
    return maps_.load(*owner);
  }

  result<void> save(const std::string& app,
                    const std::string& user,
                    const json& map) override {
    auto owner = check_owner(app, &user);
    if (!owner)
      return owner.error();
    return maps_.save(*owner, map);
  }

  result<void> remove(const std::string& app,
                      const std::string& user) override {
    return save(app, user, json::object());
  }

private:
  scope_maps maps_;
};

class sessions_of_store : public session_store {
public:
  explicit sessions_of_store(scope_maps maps) : maps_(maps) {}

  result<std::optional<json>> load(const session_key& key) override {
    auto checked = check_key(key);
    if (!checked)
      return checked.error();
    return maps_.load({checked->app, checked->user, checked->id});
  }

  result<void> save(const session_key& key, const json& map) override {
    auto checked = check_key(key);
    if (!checked)
      return checked.error();
    return maps_.save({checked->app, checked->user, checked->id}, map);
  }

  result<void> remove(const session_key& key) override {
    auto checked = check_key(key);
    if (!checked)
      return checked.error();
    return maps_.remove_session({checked->app, checked->user, checked->id});
  }

private:
  scope_maps maps_;
};

} // namespace

map_stores make_map_stores(store& kept, environment& clock) {
  const scope_maps maps(kept, clock);
  return {std::make_unique<apps_of_store>(maps),
          std::make_unique<users_of_store>(maps),
          std::make_unique<sessions_of_store>(maps)};
}

} // namespace troupe
