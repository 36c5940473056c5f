// The line of the processes of one database, in advisory locks of the server.
//
// The server keeps the order of arrival. A transaction of its own holds the
// locks, so that a turn lasts over several commits. It has written and read
// nothing, and so keeps nothing from a vacuum. A lock is a hash of the schema
// and, for an owner that is wanted, of the owner.

#pragma once

#include "troupe/stores/postgres/pool.hpp"
#include "troupe/stores/turns/line.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

namespace troupe {

/// Used by one thread at a time, except `leave`.
class postgres_turn_lock final : public turn_line {
public:
  /// `pool` outlives the line.
  explicit postgres_turn_lock(postgres_pool& pool) : pool_(pool) {}

  ~postgres_turn_lock() override { leave(); }

  /// Does not poll, so it never calls the function.
  bool enter(std::span<const owner_name> wanted,
             std::chrono::milliseconds patience,
             const std::function<void()>& meanwhile = {}) override;
  bool is_wanted(std::span<const owner_name> owners) override;
  void leave() noexcept override;

private:
  std::int64_t lock_of(const owner_name& owner) const;

  postgres_pool& pool_;
  std::optional<postgres_pool::lease> place_;
};

} // namespace troupe
