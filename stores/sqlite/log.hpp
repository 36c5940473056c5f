// The table `log`: one row per change, appended at the end and read in order.

#pragma once

#include "troupe/stores/shared/log_tail.hpp"
#include "troupe/stores/shared/stored_event.hpp"
#include "troupe/stores/sqlite/database.hpp"

namespace troupe {

class sqlite_log {
public:
  explicit sqlite_log(const sqlite_database& database);

  /// Appends one row; `text` is null for removals.
  void append(const log_row& row, const stored_event* text);

  /// Returns the number of the newest row; 0 if there is none.
  std::int64_t newest();

  /// Marks row `number` as the last of a commit with the random number `mark`.
  /// A process recognizes its commit by the mark; a file with another history
  /// has another mark or none.
  void mark(std::int64_t number, std::int64_t mark) {
    set_mark_.run(number, mark);
  }

  /// Returns the mark of a row; unset if the row or its mark does not exist.
  std::optional<std::int64_t> mark_of(std::int64_t number);

  /// Returns the last row up to which everything is folded.
  std::int64_t folded();

  /// Returns the rows after row `behind`, oldest first; read them with
  /// `row_of`.
  sqlite_rows rows_behind(std::int64_t behind) { return behind_.rows(behind); }

  /// The columns that `row_of` reads.
  static std::string columns();

  /// Reads a row without its body. Scopes that the row does not touch, and the
  /// scope of a removal, are left out.
  static log_row row_of(const sqlite_rows& rows);

  static bool is_sound(const sqlite_rows& rows);
  static void expect_sound(const sqlite_rows& rows);

  /// Throws `errc::corrupt` unless the row has that number. Rows that are not
  /// folded are never deleted, so a gap is damage.
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
