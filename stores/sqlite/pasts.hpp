// The tables `pasts`: forks, and the scopes whose events they share, and
// `first_states`: the oldest revisions of trimmed sessions.
//
// A fork has entries only for its own events. Invariant: a scope that a row
// names exists. A session that is removed while forks use it therefore keeps
// its row in `scopes`, without its names, until its last fork is gone.

#pragma once

#include "troupe/stores/sqlite/snapshots.hpp"

#include <cstdint>
#include <optional>
#include <string_view>

namespace troupe {

/// The scope that has the events of a fork up to `revision`.
struct sqlite_past {
  std::int64_t scope = 0;
  std::int64_t revision = 0;
};

/// Works inside transactions of its callers.
class sqlite_pasts {
public:
  explicit sqlite_pasts(const sqlite_database& database);

  /// Returns the past of a session; nothing if it is no fork.
  std::optional<sqlite_past> find(std::int64_t session);

  /// Makes a session a fork. If `past` is of a fork itself and begins at that
  /// revision or later, takes the past of that one.
  void add(std::int64_t session, sqlite_past past);

  /// Number of the newest event of a scope that forks share; nothing if none
  /// does.
  std::optional<std::int64_t> last_used(std::int64_t scope_id);

  void erase(std::int64_t session) { erase_.run(session); }

  /// Returns the oldest revision that a session keeps; 0 if it was not trimmed.
  /// Only the events behind it are shown. Forks may use older ones.
  std::int64_t first_revision(std::int64_t session);

  /// Returns the state of a trimmed session at that revision, or nothing.
  std::optional<sqlite_snapshot> first_state(std::int64_t session);

  /// Trims a session to `revision`; `delta` sets all keys that it had there.
  void trim(std::int64_t session,
            std::int64_t revision,
            std::int64_t microseconds,
            std::string_view delta);

  /// Gives a fork the oldest revision of its parent.
  void copy_first(std::int64_t fork, std::int64_t parent);

  void erase_first(std::int64_t session) { erase_first_.run(session); }

private:
  sqlite_statement find_;
  sqlite_statement add_;
  sqlite_statement last_used_;
  sqlite_statement erase_;
  sqlite_statement find_first_;
  sqlite_statement trim_;
  sqlite_statement copy_first_;
  sqlite_statement erase_first_;
};

} // namespace troupe
