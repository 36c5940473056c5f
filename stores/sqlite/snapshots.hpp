// The table `snapshots`: the states of scopes with many changes at some of
// their revisions, so that a read at any revision replays few rows.

#pragma once

#include "troupe/core/state_map.hpp"
#include "troupe/stores/sqlite/database.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace troupe {

/// The keys of a scope at one revision.
struct sqlite_snapshot {
  std::int64_t revision = 0;
  std::int64_t microseconds = 0; ///< Newest time of the changes up to it.
  state_map keys;
};

/// Works inside transactions of its callers.
class sqlite_snapshots {
public:
  explicit sqlite_snapshots(const sqlite_database& database);

  /// Writes the state of a scope if one is due, when its revisions `first` to
  /// `last` have just been folded.
  void note(std::int64_t scope_id, std::int64_t first, std::int64_t last);

  /// Returns the newest one up to `revision`, or nothing.
  std::optional<sqlite_snapshot> find(std::int64_t scope_id,
                                      std::int64_t revision);

private:
  std::optional<std::string> read_state(std::int64_t scope_id,
                                        std::int64_t most);

  sqlite_statement count_keys_;
  sqlite_statement keys_;
  sqlite_statement add_;
  sqlite_statement find_;
};

} // namespace troupe
