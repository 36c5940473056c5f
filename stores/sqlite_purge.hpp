// Clears away what belonged to removed sessions and users, a slice at a time.
//
// To remove an owner takes its row out of `scopes`, which hides all the rest at
// once, and puts its id on the list `purges`. What it leaves behind is many
// rows for a long session, so the following transactions share the work.

#pragma once

#include "troupe/stores/sqlite_database.hpp"

namespace troupe {

class sqlite_purge {
public:
  explicit sqlite_purge(const sqlite_database& database);

  /// Puts an owner on the list; `log` is the row that removes it.
  void add(std::int64_t scope_id, std::int64_t log);

  /// Clears up to about `rows` rows away, inside a write transaction. Nothing
  /// of an owner is touched before all of its log is folded: only then
  /// the entries list its rows.
  void work(std::int64_t rows, std::int64_t folded);

private:
  bool clear_entries(std::int64_t scope_id, std::int64_t& left);
  void clear_row(std::int64_t scope_id, std::int64_t number);
  bool is_live(std::int64_t scope_id);

  sqlite_statement add_;
  sqlite_statement next_;
  sqlite_statement done_;
  sqlite_statement entries_;
  sqlite_statement erase_entry_;
  sqlite_statement erase_fresh_entry_;
  sqlite_statement add_entry_;
  sqlite_statement find_state_;
  sqlite_statement erase_state_;
  sqlite_statement find_scope_;
  sqlite_statement find_row_;
  sqlite_statement keep_row_;
  sqlite_statement erase_row_;
};

} // namespace troupe
