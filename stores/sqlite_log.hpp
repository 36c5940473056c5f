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

  /// Marks row `number` as the last of a commit. `mark` is random: by it a
  /// process tells the commit from one of another history.
  void mark(std::int64_t number, std::int64_t mark) {
    set_mark_.run(number, mark);
  }

  /// The mark of a row; unset if there is no such row, or none on it.
  std::optional<std::int64_t> mark_of(std::int64_t number);

  /// Up to which row everything is folded.
  std::int64_t folded();

  /// The rows behind `behind`, oldest first, for `row_of`.
  sqlite_rows rows_behind(std::int64_t behind) { return behind_.rows(behind); }

  /// The columns that `row_of` takes.
  static std::string columns();

  /// Without the body. Scopes that the row does not touch, and those of
  /// removals, are left out.
  static log_row row_of(const sqlite_rows& rows);

  static bool is_sound(const sqlite_rows& rows);
  static void expect_sound(const sqlite_rows& rows);

  /// Throws unless it is the row of that number: none that is not folded is
  /// ever cleared away.
  static void expect_number(const log_row& row, std::int64_t number);

private:
  sqlite_statement insert_;
  sqlite_statement newest_;
  sqlite_statement set_mark_;
  sqlite_statement mark_of_;
  sqlite_statement folded_;
  sqlite_statement behind_;
};

} // namespace troupe
