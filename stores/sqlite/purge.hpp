// Deletes the rows of removed sessions and users, one slice at a time.
//
// A removal deletes only the owner's row in `scopes`, which hides all other
// rows at once, and adds its id to `purges`. The remaining rows may be many, so
// each of the following transactions deletes a part of them. Of a session whose
// events forks share, the events that no fork has are deleted; of a session
// that was trimmed, those that it does not keep.

#pragma once

#include "troupe/stores/sqlite/pasts.hpp"

#include <array>
#include <cstdint>

namespace troupe {

class sqlite_purge {
public:
  /// `pasts` must outlive it.
  sqlite_purge(const sqlite_database& database, sqlite_pasts& pasts);

  /// Puts an owner into the list; `log` is the number of the row that removes
  /// it.
  void add(std::int64_t scope_id, std::int64_t log);

  /// Deletes about `rows` rows; call it inside a write transaction. An owner is
  /// not touched before all of its log rows are folded, because only then the
  /// entries list all of them.
  void work(std::int64_t rows, std::int64_t folded);

private:
  // Entries to delete: those behind the number `kept`, and before `end`.
  struct range {
    std::int64_t kept;
    std::int64_t end;
  };

  range range_of(std::int64_t scope_id);
  bool clear_entries(std::int64_t scope_id, range doomed, std::int64_t& left);
  void clear_end(std::int64_t scope_id, range doomed);
  void clear_keys(std::int64_t scope_id, std::int64_t& left);
  void clear_row(std::int64_t scope_id, std::int64_t number);
  bool is_live(std::int64_t scope_id);

  sqlite_pasts& pasts_; // Belongs to the writer, as this does.
  sqlite_statement add_;
  sqlite_statement next_;
  sqlite_statement done_;
  sqlite_statement entries_;
  sqlite_statement erase_entry_;
  sqlite_statement erase_fresh_entry_;
  sqlite_statement add_entry_;
  std::array<sqlite_statement, 2> forget_id_;
  sqlite_statement find_end_;
  sqlite_statement forget_event_;
  sqlite_statement find_state_;
  sqlite_statement erase_state_;
  sqlite_statement erase_snapshots_;
  sqlite_statement erase_shared_entries_;
  sqlite_statement find_scope_;
  sqlite_statement forget_keys_;
  sqlite_statement find_row_;
  sqlite_statement keep_row_;
  sqlite_statement erase_row_;
};

} // namespace troupe
