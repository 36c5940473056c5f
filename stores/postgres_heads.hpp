// Where the scopes stand, so that a commit does not ask the database for what
// this process knows.
//
// Bounded: what has not been used for long is forgotten, and asked for again.

#pragma once

#include "troupe/stores/store.hpp"

#include <cstdint>
#include <optional>
#include <unordered_map>

namespace troupe {

/// A scope that exists.
struct postgres_head {
  std::int64_t id = 0;
  std::uint64_t revision = 0;
};

class postgres_heads {
public:
  std::optional<postgres_head> find(const owner_name& owner);

  void put(const owner_name& owner, const postgres_head& head);

  /// Another process has brought the scope here; kept if it is known at all.
  void changed(const owner_name& owner, const postgres_head& head);

  void erase(const owner_name& owner);

  /// For when it is unknown what was written.
  void clear();

private:
  using generation = std::unordered_map<owner_name, postgres_head>;

  generation young_;
  generation old_;
};

} // namespace troupe
