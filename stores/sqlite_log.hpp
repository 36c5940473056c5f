// The table `log`: one row per change, written at the end and read in order.

#pragma once

#include "troupe/stores/log_tail.hpp"
#include "troupe/stores/sqlite_database.hpp"
#include "troupe/stores/stored_event.hpp"

namespace troupe {

class sqlite_log {
public:
  explicit sqlite_log(const sqlite_database& database);

  /// Writes one row; `text` is null for removals.
  void append(const log_row& row, const stored_event* text);

  /// The number of the newest row, 0 if there is none.
  std::int64_t newest();

  /// Up to which row everything is folded.
  std::int64_t folded();

  /// The rows behind `behind`, oldest first, for `row_of`.
  sqlite_rows rows_behind(std::int64_t behind) { return behind_.rows(behind); }

  /// Without the body. Scopes that the row does not touch, and those of
  /// removals, are left out.
  static log_row row_of(const sqlite_rows& rows);

private:
  sqlite_statement insert_;
  sqlite_statement newest_;
  sqlite_statement folded_;
  sqlite_statement behind_;
};

} // namespace troupe
