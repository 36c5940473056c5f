// Where the apps are, and the sessions in memory: from a full key to its actor,
// without asking the app and the user.
//
// A session enters itself before its creation is answered, and takes itself out
// before it ends.

#pragma once

#include "troupe/core/key.hpp"

#include <caf/actor_control_block.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
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
  /// The actor of an app, or null. Without a store that means that nothing was
  /// ever created in it.
  caf::strong_actor_ptr find(const std::string& app) const;

  /// The same, made when missing; null once closed.
  caf::strong_actor_ptr open(const std::shared_ptr<setup>& shared,
                             const std::string& app);

  /// Takes an app out that wants to leave memory, unless it could still be sent
  /// something: whoever does holds a reference, which only this directory
  /// gives.
  bool leave(const app_actor& app);

  /// Suggests to all apps that they leave memory: those that are idle, or those
  /// that have been so for long.
  void suggest_leaving(bool at_once) const;

  /// Gives all of them away, and makes no more.
  std::vector<caf::strong_actor_ptr> close();

private:
  mutable std::mutex mutex_;
  bool closed_ = false;
  std::unordered_map<std::string, caf::strong_actor_ptr> apps_;
};

/// Where letters to the sessions of an app go: its actor, over a store made
/// when missing; null if there is none.
caf::strong_actor_ptr app_of(setup& shared, const std::string& app);

/// Thread-safe.
class session_directory {
public:
  void enter(session_actor& session);
  /// Takes out that very actor; one that is not in it is none.
  void remove(session_actor& session);

  /// The session's actor, kept alive by the answer, or null.
  caf::strong_actor_ptr find(const session_key& key) const;

  /// The same for a letter that is told at once, or null while letters are
  /// forwarded to it, which this one must not overtake.
  caf::strong_actor_ptr find_free(const session_key& key) const;

  /// Counts a letter that is forwarded, until it has arrived.
  void start_forward(const session_key& key);
  void arrive(const session_key& key);

  /// Counts up with every session that enters, and with `tick`.
  std::uint64_t clock() const noexcept {
    return clock_.load(std::memory_order_relaxed);
  }

  std::uint64_t tick() noexcept {
    return clock_.fetch_add(1, std::memory_order_relaxed);
  }

  std::size_t size() const noexcept {
    return size_.load(std::memory_order_relaxed);
  }

  std::vector<caf::strong_actor_ptr> all() const;

private:
  static constexpr std::size_t shard_count = 64;

  // The key is compared with the one that the actor has: stored once.
  struct alignas(64) shard {
    mutable std::mutex mutex;
    std::unordered_multimap<std::size_t, caf::strong_actor_ptr> sessions;
    // Letters on their way through the app, by session.
    std::unordered_map<session_key, std::size_t> forwards;
  };

  shard& shard_of(std::size_t hash) noexcept {
    return shards_[(hash >> 7U) % shard_count];
  }

  const shard& shard_of(std::size_t hash) const noexcept {
    return shards_[(hash >> 7U) % shard_count];
  }

  std::array<shard, shard_count> shards_;
  std::atomic<std::size_t> size_{0};
  std::atomic<std::uint64_t> clock_{0};
};

} // namespace troupe::actors
