// The table `pasts`: forks, and the scopes whose events they share.
//
// A fork has entries only for its own events. Invariant: a scope that a row
// names exists. A session that is removed while forks use it therefore keeps
// its row in `scopes`, without its names, until its last fork is gone.

#pragma once

#include "troupe/stores/sqlite/database.hpp"

#include <cstdint>
#include <optional>

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

private:
  sqlite_statement find_;
  sqlite_statement add_;
  sqlite_statement last_used_;
  sqlite_statement erase_;
};

} // namespace troupe
