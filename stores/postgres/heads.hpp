// A cache of the ids and newest revisions of scopes, so that most commits need
// no query.
//
// The size is limited: the least recently used entries are evicted.

#pragma once

#include "troupe/stores/store.hpp"

#include <cstdint>
#include <optional>
#include <unordered_map>

namespace troupe {

/// Id and newest revision of an existing scope.
struct postgres_head {
  std::int64_t id = 0;
  std::uint64_t revision = 0;
  bool was_refused = false; ///< See `postgres_heads::refused`.
};

class postgres_heads {
public:
  std::optional<postgres_head> find(const owner_name& owner);

  void put(const owner_name& owner, const postgres_head& head);

  /// Updates the entry after a change of another process, if there is an entry.
  void changed(const owner_name& owner, const postgres_head& head);

  /// Notes that a commit was refused for this entry. The entry is erased if it
  /// was refused before and has not changed since: it may be wrong.
  void refused(const owner_name& owner);

  void erase(const owner_name& owner);

  /// Forgets everything. For use when the outcome of a write is unknown.
  void clear();

private:
  using generation = std::unordered_map<owner_name, postgres_head>;

  generation young_;
  generation old_;
};

} // namespace troupe
