#include "troupe/stores/map_stores.hpp"
#include "troupe/stores/shared/owner_map.hpp"
#include "troupe/stores/shared/owner_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <tuple>
#include <utility>

namespace troupe {

namespace {

// -- all maps ----

// The three stores as one. Throws `troupe::error`.
class owner_maps {
public:
  owner_maps(app_state_store& apps,
             user_state_store& users,
             session_store& sessions)
    : apps_(apps),
      users_(users),
      sessions_(sessions) {}

  std::optional<owner_map> load(const owner_name& owner) {
    auto found = load_json(owner).value();
    if (!found)
      return std::nullopt;
    return owner_map(std::move(*found));
  }

  void save(const owner_name& owner, const json& map) {
    switch (owner.where()) {
    case scope::app:
      return apps_.save(owner.app, map).value();
    case scope::user:
      return users_.save(owner.app, owner.user, map).value();
    default:
      return sessions_.save(key_of(owner), map).value();
    }
  }

  void remove(const owner_name& owner) {
    switch (owner.where()) {
    case scope::app:
      return apps_.remove(owner.app).value();
    case scope::user:
      return users_.remove(owner.app, owner.user).value();
    default:
      return sessions_.remove(key_of(owner)).value();
    }
  }

private:
  static session_key key_of(const owner_name& owner) {
    return {owner.app, owner.user, owner.session};
  }

  result<std::optional<json>> load_json(const owner_name& owner) {
    switch (owner.where()) {
    case scope::app:
      return apps_.load(owner.app);
    case scope::user:
      return users_.load(owner.app, owner.user);
    default:
      return sessions_.load(key_of(owner));
    }
  }

  app_state_store& apps_;
  user_state_store& users_;
  session_store& sessions_;
};

// -- one commit ----

// The maps as some changes leave them, before anything is saved. All changes
// are checked on the draft, so a refused commit saves nothing.
class draft {
public:
  explicit draft(owner_maps& maps) : maps_(maps) {}

  void apply(const store_change& change) {
    const auto& owner = change.owner;
    switch (change.kind) {
    case change_kind::create:
      create(owner);
      if (change.past)
        copy_past(owner, *change.past);
      break;
    case change_kind::remove:
      remove(owner, change.session_revision);
      return;
    case change_kind::remove_user:
      remove_user(owner);
      return;
    case change_kind::trim:
      throw error(errc::invalid_argument,
                  "a store made by compose_store cannot trim sessions");
    case change_kind::close_runs:
      return; // No store of three maps keeps open runs.
    case change_kind::append:
    case change_kind::write:
      break;
    }
    if (change.session_revision)
      write_session(change);
    write_wider(user_of(owner), change, change.user_revision);
    write_wider(app_of(owner), change, change.app_revision);
  }

  std::vector<owner_name> moved() const {
    return {moved_.begin(), moved_.end()};
  }

  void save() {
    // Removals first, then app, user, session. A session is saved after the
    // maps that name it. In the other order a failure in between would leave a
    // session that `list` cannot find.
    for (const auto& owner : changed_)
      if (!at(owner))
        maps_.remove(owner);
    for (const auto where : {scope::app, scope::user, scope::session})
      for (const auto& owner : changed_)
        if (const auto& map = at(owner); map && owner.where() == where)
          maps_.save(owner, map->map());
  }

private:
  std::optional<owner_map>& at(const owner_name& owner) {
    if (const auto found = seen_.find(owner); found != seen_.end())
      return found->second;
    return seen_.emplace(owner, maps_.load(owner)).first->second;
  }

  // Returns a map for editing; adds an empty one if it is missing.
  owner_map& edit(const owner_name& owner) {
    changed_.insert(owner);
    auto& map = at(owner);
    if (!map)
      map.emplace();
    return *map;
  }

  void expect(const owner_name& owner, bool holds) {
    if (!holds)
      moved_.insert(owner);
  }

  void create(const owner_name& owner) {
    expect(owner, !at(owner));
    at(owner).reset();
    edit(owner);
    edit(user_of(owner)).add_name("sessions", owner.session);
    edit(app_of(owner)).add_name("users", owner.user);
  }

  // A map holds all events of its session, so a fork has copies.
  void copy_past(const owner_name& fork, const shared_past& past) {
    const owner_name parent{fork.app, fork.user, past.session};
    const auto& from = at(parent);
    const bool is_there
      = parent != fork && from && from->revision() >= past.revision;
    expect(parent, is_there);
    if (is_there)
      edit(fork).copy_events(*from, past.revision);
  }

  void remove(const owner_name& owner,
              const std::optional<std::uint64_t>& revision) {
    const auto& before = at(owner);
    expect(owner, before && (!revision || before->revision() + 1 == *revision));
    at(owner).reset();
    changed_.insert(owner);
    if (at(user_of(owner)))
      edit(user_of(owner)).drop_name("sessions", owner.session);
  }

  void remove_user(const owner_name& user) {
    auto& map = at(user);
    if (!map)
      return;
    for (const auto& id : map->names("sessions")) {
      const owner_name session{user.app, user.user, id};
      at(session).reset();
      changed_.insert(session);
    }
    map.reset();
    changed_.insert(user);
    if (at(app_of(user)))
      edit(app_of(user)).drop_name("users", user.user);
  }

  void write_session(const store_change& change) {
    const bool is_new = change.kind == change_kind::create;
    const auto& before = at(change.owner);
    if (!is_new)
      expect(change.owner,
             before && before->revision() + 1 == *change.session_revision);
    auto& map = edit(change.owner);
    map.apply(*change.event, scope::session, *change.session_revision);
    map.update(change.event->timestamp, is_new);
    if (change.kind == change_kind::append)
      map.append(*change.event, *change.session_revision);
  }

  void write_wider(const owner_name& owner,
                   const store_change& change,
                   const std::optional<std::uint64_t>& revision) {
    if (!revision)
      return;
    // A user without sessions is named by its app, too.
    if (owner.where() == scope::user && !at(owner))
      edit(app_of(owner)).add_name("users", owner.user);
    auto& map = edit(owner);
    expect(owner, map.revision() + 1 == *revision);
    map.apply(*change.event, owner.where(), *revision);
  }

  owner_maps& maps_;
  std::map<owner_name, std::optional<owner_map>> seen_;
  std::set<owner_name> changed_;
  std::set<owner_name> moved_;
};

// -- the store ----

auto rank_of(timestamp time, const std::string& user, const std::string& id) {
  // Newest first. A minus would overflow.
  return std::tuple(~time.time_since_epoch().count(), user, id);
}

auto rank_of_row(const session_row& row) {
  return rank_of(row.last_update_time, row.key.user, row.key.id);
}

class composed_store : public store {
public:
  explicit composed_store(owner_maps maps) : maps_(maps) {}

  result<commit_outcome>
  commit(std::span<const store_change> changes) override {
    return attempt("commit", [&] {
      draft drafted(maps_);
      for (const auto& change : changes)
        drafted.apply(change);
      auto moved = drafted.moved();
      if (moved.empty())
        drafted.save();
      return commit_outcome{std::move(moved)};
    });
  }

  result<std::vector<moved_owner>> changed_elsewhere() override {
    return std::vector<moved_owner>();
  }

  result<std::optional<stored_scope>>
  load_scope(const owner_name& owner) override {
    return attempt("load " + to_string(owner), [&] {
      const auto found = maps_.load(owner);
      return found ? std::optional(found->scope()) : std::nullopt;
    });
  }

  result<std::optional<stored_session>>
  load_session(const session_key& key, const load_options& options) override {
    return attempt("load " + to_string(key), [&] {
      std::optional<stored_session> loaded;
      const auto found = maps_.load(owner_of(key));
      if (!found)
        return loaded;
      loaded.emplace();
      loaded->scope = found->scope();
      loaded->last_update_time = found->updated();
      const auto entries = found->events();
      auto left = entries.size();
      for (const auto* entry : entries) {
        const bool is_wanted
          = entry->at("number").get<std::uint64_t>() > options.after;
        if (is_wanted && left <= options.events_max)
          loaded->events.push_back(event_from(*entry));
        if (is_wanted && left <= options.ids_max)
          loaded->id_hashes.push_back(
            id_hash(entry->at("event").at("id").get<std::string>()));
        --left;
      }
      return loaded;
    });
  }

  result<std::vector<event_ptr>> load_events(const session_key& key,
                                             std::uint64_t first,
                                             std::uint64_t last) override {
    return attempt("load events of " + to_string(key), [&] {
      std::vector<event_ptr> loaded;
      const auto found = maps_.load(owner_of(key));
      if (!found)
        return loaded;
      for (const auto* entry : found->events()) {
        const auto number = entry->at("number").get<std::uint64_t>();
        if (first <= number && number <= last)
          loaded.push_back(event_from(*entry));
      }
      return loaded;
    });
  }

  bool can_fork() const noexcept override { return true; }

  result<std::vector<session_row>> list(const row_query& query) override {
    return attempt("list the sessions of " + query.app, [&] {
      std::vector<session_row> rows;
      const auto app = maps_.load({query.app});
      if (!app)
        return rows;
      const auto keys = app->scope().keys;
      if (query.user)
        add_rows(rows, keys, {query.app, *query.user}, query);
      else
        for (const auto& user : app->names("users"))
          add_rows(rows, keys, {query.app, user}, query);
      std::ranges::sort(rows, {}, rank_of_row);
      if (rows.size() > query.limit)
        rows.resize(query.limit);
      return rows;
    });
  }

  result<std::vector<std::string>>
  list_users(const user_query& query) override {
    return attempt("list the users of " + query.app, [&] {
      std::vector<std::string> names;
      const auto app = maps_.load({query.app});
      if (!app)
        return names;
      for (const auto& user : app->names("users"))
        if (names.size() < query.limit && user > query.behind)
          names.push_back(user);
      return names;
    });
  }

  result<std::vector<std::string>>
  check(const std::function<void(double done)>& on_progress) override {
    if (on_progress)
      on_progress(1);
    return std::vector<std::string>();
  }

  result<void> close() override { return {}; }

private:
  // Calls `act` under the lock and turns exceptions into results; they may come
  // from the user's stores too.
  template <class Action>
  auto attempt(const std::string& what, const Action& act)
    -> result<decltype(act())> {
    const std::lock_guard guard(mutex_);
    try {
      return act();
    } catch (const error& failure) {
      return error(failure.code(),
                   fmt::format("{}: {}", what, failure.message()));
    } catch (const json::exception& failure) {
      return error(
        errc::corrupt,
        fmt::format("{}: not a map of troupe's: {}", what, failure.what()));
    } catch (const std::exception& failure) {
      return error(errc::store_failed,
                   fmt::format("{}: {}", what, failure.what()));
    }
  }

  void add_rows(std::vector<session_row>& rows,
                const state_map& app_keys,
                const owner_name& user,
                const row_query& query) {
    const auto user_map = maps_.load(user);
    if (!user_map)
      return;
    const auto user_keys = user_map->scope().keys;
    for (const auto& id : user_map->names("sessions")) {
      const auto found = maps_.load({user.app, user.user, id});
      if (!found)
        continue; // A commit that failed half-way has left the name.
      auto kept = found->scope();
      session_row row{{user.app, user.user, id},
                      std::move(kept.keys),
                      user_keys,
                      app_keys,
                      kept.revision,
                      found->updated()};
      if (!query.behind
          || rank_of_row(row) > rank_of(query.behind->last_update_time,
                                        query.behind->user,
                                        query.behind->session))
        rows.push_back(std::move(row));
    }
  }

  std::mutex mutex_;
  owner_maps maps_;
};

} // namespace

std::unique_ptr<store> compose_store(app_state_store& apps,
                                     user_state_store& users,
                                     session_store& sessions) {
  return std::make_unique<composed_store>(owner_maps(apps, users, sessions));
}

} // namespace troupe
