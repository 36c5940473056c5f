// Directories of the apps and sessions in memory. A session is found by its
// full key, without a message to app and user.
//
// A session enters the directory before its creation is answered, so the caller
// finds it. It leaves the directory before it ends.

#pragma once

#include "troupe/actors/engine/ref.hpp"
#include "troupe/core/key.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace troupe::actors {

class app_actor;
class session_actor;
struct setup;

/// Thread-safe.
class app_directory {
public:
  /// The actor of an app, or null. Without a store, null means that no session
  /// was ever created in the app.
  ref<app_actor> find(const std::string& app) const;

  /// Finds or makes the actor of an app; null once closed.
  ref<app_actor> open(const std::shared_ptr<setup>& shared,
                      const std::string& app);

  /// The first `limit` apps behind `behind`, in the order of their bytes.
  std::vector<std::string> names(const std::string& behind,
                                 std::size_t limit) const;

  /// Removes an app that wants to leave memory. Returns false, and keeps it, if
  /// another reference to it exists: its holder could still send a letter. Only
  /// this directory hands out references.
  bool remove_unused(const app_actor& app);

  /// Suggests to all apps that they leave memory: to idle ones at once, or only
  /// to those that have been idle for long.
  void suggest_leaving(bool at_once) const;

  /// Returns all apps and closes the directory: no app is made from then on.
  std::vector<ref<app_actor>> close();

private:
  mutable std::mutex mutex_;
  bool closed_ = false;
  std::map<std::string, ref<app_actor>> apps_;
};

/// The actor that takes letters for sessions of an app. Over a store it is made
/// if missing; without one it may be null.
ref<app_actor> app_of(setup& shared, const std::string& app);

/// Thread-safe.
class session_directory {
public:
  void add(session_actor& session);
  /// Removes this actor only; a later actor of the same key stays. No effect if
  /// it is not in the directory.
  void remove(session_actor& session);
  /// Removes a session that wants to leave memory. Returns false, and keeps it,
  /// if another reference to it exists: its holder could still send a letter.
  /// Only this directory hands out references.
  bool remove_unused(session_actor& session);

  /// The session's actor, or null. The result keeps the actor alive.
  ref<session_actor> find(const session_key& key) const;

  /// The session's actor for a letter that is sent right away. Null while
  /// letters for the session are forwarded by its app, since this letter must
  /// not overtake them.
  ref<session_actor> find_free(const session_key& key) const;

  /// Counts a forwarded letter until `arrive` is called for it.
  void start_forward(const session_key& key);
  void arrive(const session_key& key);

  /// Logical time of last use. Advances with each session that enters, and
  /// with `tick`.
  std::uint64_t clock() const noexcept {
    return clock_.load(std::memory_order_relaxed);
  }

  std::uint64_t tick() noexcept {
    return clock_.fetch_add(1, std::memory_order_relaxed);
  }

  std::size_t size() const noexcept {
    return size_.load(std::memory_order_relaxed);
  }

  /// Times of the last use of all sessions.
  std::vector<std::uint64_t> last_uses() const;

  /// Suggests to all sessions that were last used at `tick` or before that they
  /// leave memory.
  void suggest_leaving(std::uint64_t tick) const;

private:
  static constexpr std::size_t shard_count = 64;

  // Keys are not stored here: the actor has its own to compare with.
  struct alignas(64) shard {
    mutable std::mutex mutex;
    std::unordered_multimap<std::size_t, ref<session_actor>> sessions;
    // Number of forwarded letters on their way, by session.
    std::unordered_map<session_key, std::size_t> forwards;
  };

  shard& shard_of(std::size_t hash) noexcept {
    return shards_[(hash >> 7U) % shard_count];
  }

  const shard& shard_of(std::size_t hash) const noexcept {
    return shards_[(hash >> 7U) % shard_count];
  }

  bool remove_if(session_actor& session, bool is_unused);

  template <class Use>
  void for_each(const Use& use) const;

  std::array<shard, shard_count> shards_;
  std::atomic<std::size_t> size_{0};
  std::atomic<std::uint64_t> clock_{0};
};

} // namespace troupe::actors
