#include "troupe/actors/directory.hpp"

#include "troupe/actors/session_actor.hpp"

namespace troupe::actors {

namespace {

template <class Sessions>
auto position(Sessions& sessions, std::size_t hash, const session_key& key) {
  auto [next, last] = sessions.equal_range(hash);
  while (next != last && !as_session(next->second).has_key(key))
    ++next;
  return next == last ? sessions.end() : next;
}

} // namespace

void session_directory::enter(const session_key& key,
                              caf::strong_actor_ptr session) {
  const auto hash = std::hash<session_key>{}(key);
  auto& held = shard_of(hash);
  const std::lock_guard guard(held.mutex);
  held.sessions.emplace(hash, std::move(session));
}

void session_directory::remove(const session_key& key) {
  const auto hash = std::hash<session_key>{}(key);
  auto& held = shard_of(hash);
  caf::strong_actor_ptr removed; // Dropped outside of the lock.
  const std::lock_guard guard(held.mutex);
  if (const auto found = position(held.sessions, hash, key);
      found != held.sessions.end()) {
    removed = std::move(found->second);
    held.sessions.erase(found);
  }
}

caf::strong_actor_ptr session_directory::find(const session_key& key) const {
  const auto hash = std::hash<session_key>{}(key);
  const auto& held = shard_of(hash);
  const std::lock_guard guard(held.mutex);
  const auto found = position(held.sessions, hash, key);
  return found != held.sessions.end() ? found->second : nullptr;
}

} // namespace troupe::actors
