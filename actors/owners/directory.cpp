#include "troupe/actors/owners/directory.hpp"

#include "troupe/actors/engine/spawn.hpp"
#include "troupe/actors/owners/app.hpp"
#include "troupe/actors/owners/retirement.hpp"
#include "troupe/actors/owners/session.hpp"
#include "troupe/actors/setup.hpp"

namespace troupe::actors {

namespace {

template <class Sessions>
auto position(Sessions& sessions, std::size_t hash, const session_key& key) {
  auto [next, last] = sessions.equal_range(hash);
  while (next != last && !next->second->has_key(key))
    ++next;
  return next == last ? sessions.end() : next;
}

} // namespace

// -- apps ---------------------------------------------------------------------

ref<app_actor> app_directory::find(const std::string& app) const {
  const std::lock_guard guard(mutex_);
  const auto found = apps_.find(app);
  return found == apps_.end() ? nullptr : found->second;
}

ref<app_actor> app_directory::open(const std::shared_ptr<setup>& shared,
                                   const std::string& app) {
  const std::lock_guard guard(mutex_);
  if (closed_ || shared->closing)
    return nullptr;
  auto& known = apps_[app];
  if (!known) {
    known = spawn_actor<app_actor>(shared->system, shared, app);
    if (shared->store)
      shared->retirement->note_apps(apps_.size());
  }
  return known;
}

std::vector<std::string> app_directory::names(const std::string& behind,
                                              std::size_t limit) const {
  const std::lock_guard guard(mutex_);
  std::vector<std::string> found;
  for (auto next = apps_.upper_bound(behind);
       next != apps_.end() && found.size() < limit;
       ++next)
    found.push_back(next->first);
  return found;
}

bool app_directory::remove_unused(const app_actor& app) {
  const std::lock_guard guard(mutex_);
  if (!app.is_unknown_elsewhere())
    return false;
  apps_.erase(app.app_name());
  return true;
}

// Sent under the lock: a copied reference would keep the apps in memory,
// see `remove_unused`.
void app_directory::suggest_leaving(bool at_once) const {
  const std::lock_guard guard(mutex_);
  for (const auto& [name, app] : apps_) {
    auto suggested
      = std::make_unique<retire>(retire::step::suggested, std::string());
    suggested->at_once = at_once;
    app->tell(std::move(suggested));
  }
}

std::vector<ref<app_actor>> app_directory::close() {
  const std::lock_guard guard(mutex_);
  closed_ = true;
  std::vector<ref<app_actor>> all;
  for (auto& [name, app] : apps_)
    all.push_back(std::move(app));
  apps_.clear();
  return all;
}

ref<app_actor> app_of(setup& shared, const std::string& app) {
  if (auto found = shared.apps->find(app))
    return found;
  return shared.store ? shared.apps->open(shared.share(), app) : nullptr;
}

// -- sessions -----------------------------------------------------------------

void session_directory::add(session_actor& session) {
  const auto hash = std::hash<session_key>{}(session.key());
  tick();
  auto& held = shard_of(hash);
  const std::lock_guard guard(held.mutex);
  held.sessions.emplace(hash, ref(session));
  size_.fetch_add(1, std::memory_order_relaxed);
}

void session_directory::remove(session_actor& session) {
  remove_if(session, false);
}

bool session_directory::remove_unused(session_actor& session) {
  return remove_if(session, true);
}

bool session_directory::remove_if(session_actor& session, bool is_unused) {
  const auto hash = std::hash<session_key>{}(session.key());
  auto& held = shard_of(hash);
  ref<session_actor> removed; // Destroyed after the lock is released.
  const std::lock_guard guard(held.mutex);
  auto [next, last] = held.sessions.equal_range(hash);
  while (next != last && &*next->second != &session)
    ++next;
  if (next == last || (is_unused && !session.is_unknown_elsewhere()))
    return false;
  removed = std::move(next->second);
  held.sessions.erase(next);
  size_.fetch_sub(1, std::memory_order_relaxed);
  return true;
}

ref<session_actor> session_directory::find(const session_key& key) const {
  const auto hash = std::hash<session_key>{}(key);
  const auto& held = shard_of(hash);
  const std::lock_guard guard(held.mutex);
  const auto found = position(held.sessions, hash, key);
  return found != held.sessions.end() ? found->second : nullptr;
}

ref<session_actor> session_directory::find_free(const session_key& key) const {
  const auto hash = std::hash<session_key>{}(key);
  const auto& held = shard_of(hash);
  const std::lock_guard guard(held.mutex);
  const auto found = position(held.sessions, hash, key);
  return found == held.sessions.end()
             || (!held.forwards.empty() && held.forwards.contains(key))
           ? nullptr
           : found->second;
}

void session_directory::start_forward(const session_key& key) {
  auto& held = shard_of(std::hash<session_key>{}(key));
  const std::lock_guard guard(held.mutex);
  ++held.forwards[key];
}

void session_directory::arrive(const session_key& key) {
  auto& held = shard_of(std::hash<session_key>{}(key));
  const std::lock_guard guard(held.mutex);
  if (const auto found = held.forwards.find(key);
      found != held.forwards.end() && --found->second == 0)
    held.forwards.erase(found);
}

// Under the lock: a copied reference would keep a session in memory, see
// `remove_unused`.
template <class Use>
void session_directory::for_each(const Use& use) const {
  for (const auto& held : shards_) {
    const std::lock_guard guard(held.mutex);
    for (const auto& [hash, session] : held.sessions)
      use(*session);
  }
}

std::vector<std::uint64_t> session_directory::last_uses() const {
  std::vector<std::uint64_t> found;
  found.reserve(size());
  for_each(
    [&found](const session_actor& each) { found.push_back(each.last_used()); });
  return found;
}

void session_directory::suggest_leaving(std::uint64_t tick) const {
  for_each([tick](session_actor& each) {
    if (each.last_used() <= tick)
      each.tell(
        std::make_unique<retire>(retire::step::suggested, std::string()));
  });
}

} // namespace troupe::actors
