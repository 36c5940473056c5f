// Loads on a connection of their own, each from one moment of the file.
//
// What is folded comes from the tables, the rest from the tail in memory, and
// what not even that has seen yet (commits of other processes, and those that
// end just now) from the log.

#pragma once

#include "troupe/stores/sqlite_log.hpp"
#include "troupe/stores/sqlite_session_list.hpp"
#include "troupe/stores/sqlite_writer.hpp"

#include <span>
#include <unordered_map>

namespace troupe {

/// One scope at one moment.
struct read_scope {
  std::int64_t id = 0;
  std::int64_t folded_revision = 0;
  std::int64_t revision = 0;
  timestamp last_update_time{};
  /// How many keys are folded.
  std::int64_t folded_keys = 0;
  state_map keys;
  /// What is not folded, oldest first.
  std::vector<pending_change> pending;
};

class sqlite_reader {
public:
  explicit sqlite_reader(sqlite_shared& shared);

  std::optional<stored_scope> load_scope(const owner_name& owner);
  std::optional<stored_session> load_session(const session_key& key,
                                             const load_options& options);
  std::vector<event_ptr>
  load_events(const session_key& key, std::uint64_t first, std::uint64_t last);
  std::vector<event_ptr> find_events(const session_key& key,
                                     std::span<const std::string> ids);
  std::vector<session_row> list(const row_query& query);

  /// Reads the rows that are not folded into the store's tail, for a store
  /// without a writer.
  void fill_tail();

  /// For what reads more than one thing at one moment.
  class moment {
  public:
    explicit moment(sqlite_reader& reader);
    moment(const moment&) = delete;
    moment& operator=(const moment&) = delete;

  private:
    log_tail::hold hold_; // Before the transaction, see there.
    sqlite_transaction reading_;
  };

  /// Inside a moment.
  std::optional<read_scope> read(const owner_name& owner);

  /// The newest row of the log at the moment.
  std::int64_t newest() const noexcept { return newest_; }

  const sqlite_database& database() const noexcept { return database_; }

private:
  struct numbered_row {
    std::int64_t number;
    std::int64_t log;
    std::uint32_t id_hash;
  };

  std::optional<read_scope> find(const owner_name& owner);
  void collect_pending(read_scope& found, scope where);
  void read_keys(read_scope& found, scope where);
  std::vector<numbered_row> newest_rows(const read_scope& session,
                                        std::size_t count);
  static void next_entry(sqlite_rows& rows, std::int64_t number);
  event_ptr
  read_event(std::int64_t log, std::int64_t session, std::int64_t number);

  sqlite_shared& shared_; // The store's, which outlives this.
  sqlite_database database_;
  sqlite_log log_;
  sqlite_statement find_;
  sqlite_statement keys_;
  sqlite_statement newest_entries_;
  sqlite_statement entries_between_;
  sqlite_statement event_;
  sqlite_statement settled_ids_;
  sqlite_statement fresh_ids_;
  sqlite_session_list sessions_;
  std::optional<sqlite_watch> watch_; // Once the file has been read.
  std::int64_t newest_ = 0;
  std::vector<log_row> unseen_; // Rows that the tail does not have yet.
};

} // namespace troupe
