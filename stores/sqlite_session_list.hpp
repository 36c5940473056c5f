// Sessions of an app in the order of a list, from one moment of a SQLite file.
//
// What is folded is in that order in an index of `scopes`. Sessions that the
// rows behind it touch come from the tail. So a page costs what it holds and
// what has changed lately.

#pragma once

#include "troupe/stores/log_tail.hpp"
#include "troupe/stores/sqlite_database.hpp"

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace troupe {

/// A session that may stand on a page.
struct listed_session {
  std::int64_t id = 0;
  std::string user;
  std::string session;
  /// Microseconds since 1970.
  std::int64_t updated = std::numeric_limits<std::int64_t>::min();
};

/// Of one reader; used inside of its moments.
class sqlite_session_list {
public:
  sqlite_session_list(const sqlite_database& database, log_tail& tail);

  /// The first of the sessions that `query` asks for, in its order. `newest` is
  /// the moment's newest row of the log, and `folded` the one up to which all
  /// is folded; `unseen` are rows that the tail does not have.
  std::vector<listed_session> page(const row_query& query,
                                   std::int64_t newest,
                                   std::int64_t folded,
                                   std::span<const log_row> unseen);

private:
  // The folded row of a session that the tail touches, kept for the next page.
  struct folded_row {
    // Of the tail: folding changes the row, and takes this one away. 0: not to
    // be kept.
    std::int64_t first = 0;
    std::string app; // Empty: it was removed.
    listed_session listed;
  };

  using recent_sessions = std::unordered_map<std::int64_t, folded_row>;

  void look_at_recent(std::int64_t newest, std::span<const log_row> unseen);
  void read_folded(std::int64_t id, folded_row& kept);
  void add_recent(const row_query& query, std::vector<listed_session>& found);
  void add_folded(const row_query& query, std::vector<listed_session>& found);
  bool
  take(sqlite_rows rows, std::size_t& left, std::vector<listed_session>& found);

  log_tail& tail_; // The store's, which outlives this.
  // Of the last page. Another process may fold rows that the tail never had:
  // then rows of `scopes` are newer than those that were kept.
  std::int64_t folded_ = 0;
  recent_sessions recent_; // By id; `listed.updated` is the true time.
  sqlite_statement find_;
  sqlite_statement app_tied_;
  sqlite_statement app_older_;
  sqlite_statement user_tied_;
  sqlite_statement user_older_;
};

} // namespace troupe
