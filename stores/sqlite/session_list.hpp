// Sessions of an app in list order, and the names of users and apps, from one
// state of a SQLite file.
//
// An index of `scopes` has the folded sessions in that order. Sessions that
// later rows touch come from the tail. So the cost of a page depends on its
// length and on the number of recent changes.

#pragma once

#include "troupe/stores/shared/log_tail.hpp"
#include "troupe/stores/sqlite/database.hpp"
#include "troupe/stores/store.hpp"

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace troupe {

/// A session that may be on a page.
struct listed_session {
  std::int64_t id = 0;
  std::string user;
  std::string session;
  /// Microseconds since 1970.
  std::int64_t updated = std::numeric_limits<std::int64_t>::min();
};

/// Belongs to one reader; used inside its moments.
class sqlite_session_list {
public:
  sqlite_session_list(const sqlite_database& database, log_tail& tail);

  /// Returns the first sessions of `query`, in order. `newest` is the moment's
  /// newest log row, and `folded` the row up to which all is folded. `unseen`
  /// are rows that the tail does not have.
  std::vector<listed_session> page(const row_query& query,
                                   std::int64_t newest,
                                   std::int64_t folded,
                                   std::span<const log_row> unseen);

  /// Returns the first sessions of `query`, in order. Names are never folded,
  /// so the tail is not needed; `updated` is not set.
  std::vector<listed_session> names(const name_query& query);

  /// Returns the first user of the app, or the first app, whose name is behind
  /// `behind` in the order of the bytes. Nothing if there is none. Skips the
  /// rows between two names by the index.
  std::optional<std::string> next_user(std::string_view app,
                                       std::string_view behind);
  std::optional<std::string> next_app(std::string_view behind);

private:
  // The folded row of a session that the tail touches, cached for the next
  // page.
  struct folded_row {
    // The session's first row in the tail. Folding changes the row in `scopes`
    // and drops this one, so a different number invalidates the cache. 0: do
    // not cache.
    std::int64_t first = 0;
    std::string app; // Empty if the session was removed.
    listed_session listed;
  };

  using recent_sessions = std::unordered_map<std::int64_t, folded_row>;

  void look_at_recent(std::int64_t newest, std::span<const log_row> unseen);
  void read_folded(std::int64_t id, folded_row& kept);
  void add_recent(const row_query& query, std::vector<listed_session>& found);
  void add_folded(const row_query& query, std::vector<listed_session>& found);
  bool
  take(sqlite_rows rows, std::size_t& left, std::vector<listed_session>& found);

  log_tail& tail_; // Belongs to the store, which outlives this.
  // Value at the last page. Another process may fold rows that the tail never
  // had; then the rows in `scopes` are newer than the cached ones.
  std::int64_t folded_ = 0;
  recent_sessions
    recent_; // Cache by session id; `listed.updated` includes the tail.
  sqlite_statement find_;
  sqlite_statement app_tied_;
  sqlite_statement app_older_;
  sqlite_statement user_tied_;
  sqlite_statement user_older_;
  sqlite_statement app_names_;
  sqlite_statement user_names_;
  sqlite_statement next_user_;
  sqlite_statement next_app_;
};

} // namespace troupe
