// Deletes the rows of removed sessions and users, one slice at a time.
//
// A removal deletes only the owner's row in `scopes`, which hides all other
// rows at once, and adds its id to `purges`. The remaining rows may be many, so
// each of the following transactions deletes a part of them.

#pragma once

#include "troupe/stores/sqlite/database.hpp"

namespace troupe {

class sqlite_purge {
public:
  explicit sqlite_purge(const sqlite_database& database);

  /// Puts an owner into the list; `log` is the number of the row that removes
  /// it.
  void add(std::int64_t scope_id, std::int64_t log);

  /// Deletes about `rows` rows; call it inside a write transaction. An owner is
  /// not touched before all of its log rows are folded, because only then the
  /// entries list all of them.
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
  sqlite_statement erase_snapshots_;
  sqlite_statement find_scope_;
  sqlite_statement find_row_;
  sqlite_statement keep_row_;
  sqlite_statement erase_row_;
};

} // namespace troupe
