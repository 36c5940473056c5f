// Where the live sessions are: from a full key to its actor, without asking the
// app and the user.
//
// A session enters itself before its creation is answered, and takes itself out
// before it ends.

#pragma once

#include "troupe/core/key.hpp"

#include <caf/actor_control_block.hpp>

#include <array>
#include <cstddef>
#include <mutex>
#include <unordered_map>

namespace troupe::actors {

class session_actor;

/// Thread-safe.
class session_directory {
public:
  void enter(const session_key& key, caf::strong_actor_ptr session);
  void remove(const session_key& key);

  /// The session's actor, kept alive by the answer, or null.
  caf::strong_actor_ptr find(const session_key& key) const;

private:
  static constexpr std::size_t shard_count = 64;

  // The key is compared with the one that the actor has: stored once.
  struct alignas(64) shard {
    mutable std::mutex mutex;
    std::unordered_multimap<std::size_t, caf::strong_actor_ptr> sessions;
  };

  shard& shard_of(std::size_t hash) noexcept {
    return shards_[(hash >> 7U) % shard_count];
  }

  const shard& shard_of(std::size_t hash) const noexcept {
    return shards_[(hash >> 7U) % shard_count];
  }

  std::array<shard, shard_count> shards_;
};

} // namespace troupe::actors
