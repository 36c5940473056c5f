// Loads from a SQLite file on its own connection. Each load sees one state.
//
// Folded rows come from the tables, other rows from the tail in memory. Rows
// that the tail does not have yet (commits of other processes, and commits that
// are ending now) come from the log.

#pragma once

#include "troupe/stores/sqlite/entries.hpp"
#include "troupe/stores/sqlite/log.hpp"
#include "troupe/stores/sqlite/pasts.hpp"
#include "troupe/stores/sqlite/runs.hpp"
#include "troupe/stores/sqlite/session_list.hpp"
#include "troupe/stores/sqlite/snapshots.hpp"
#include "troupe/stores/sqlite/writer.hpp"

#include <span>
#include <unordered_map>

namespace troupe {

/// One scope in one state of the file.
struct read_scope {
  std::int64_t id = 0;
  std::int64_t folded_revision = 0;
  std::int64_t revision = 0;
  /// Revision of its creation. Events up to there are in `past`.
  std::int64_t first = 0;
  std::optional<sqlite_past> past;
  /// Of a session that is read by its names: the oldest revision that it keeps.
  /// 0 unless it was trimmed.
  std::int64_t kept_from = 0;
  timestamp last_update_time{};
  /// Number of keys in the folded state.
  std::int64_t folded_keys = 0;
  state_map keys;
  /// Changes that are not folded, oldest first.
  std::vector<pending_change> pending;
};

class sqlite_reader {
public:
  explicit sqlite_reader(sqlite_shared& shared);

  std::optional<stored_scope> load_scope(const owner_name& owner);
  std::optional<stored_session> load_session(const session_key& key,
                                             const load_options& options);
  std::optional<stored_session> load_session_at(const session_key& key,
                                                std::uint64_t revision,
                                                std::size_t events_max);
  std::optional<earlier_shared_state>
  load_shared_state_at(const session_key& key, std::uint64_t revision);
  std::vector<event_ptr>
  load_events(const session_key& key, std::uint64_t first, std::uint64_t last);
  std::vector<event_ptr> find_events(const session_key& key,
                                     std::span<const std::string> ids);
  std::vector<session_row> list(const row_query& query);
  std::vector<session_row> list_by_name(const name_query& query);
  std::vector<std::string> list_users(const user_query& query);
  std::vector<std::string> list_apps(const app_query& query);
  std::vector<open_run> list_runs(const run_query& query);

  /// Reads the rows that are not folded into the store's tail. For a store
  /// without a writer.
  void fill_tail();

  /// Throws `sqlite_history_lost` if the path leads to another file.
  void check_file() { watch_.check_file(); }

  /// Keeps one state of the file for several reads.
  class moment {
  public:
    explicit moment(sqlite_reader& reader);
    moment(const moment&) = delete;
    moment& operator=(const moment&) = delete;

  private:
    log_tail::hold hold_; // Taken before the transaction; see there.
    sqlite_transaction reading_;
  };

  /// Reads a session by its id, also one without names, and without its keys;
  /// call it inside a moment.
  std::optional<read_scope> find_session(std::int64_t id);

  /// Reads a scope; call it inside a moment.
  std::optional<read_scope> read(const owner_name& owner);

  /// Number of the newest log row at the moment.
  std::int64_t newest() const noexcept { return newest_; }

  const sqlite_database& database() const noexcept { return database_; }

private:
  struct numbered_row {
    std::int64_t scope;
    std::int64_t number;
    std::int64_t log;
    std::uint32_t id_hash;
  };

  // A scope that has events of a session: those behind its creation, up to
  // number `last`.
  struct event_part {
    read_scope scope;
    std::int64_t last;
  };

  // The session's own scope, then those of its past, newest first.
  using event_parts = std::vector<event_part>;

  std::optional<read_scope> find(const owner_name& owner);
  /// `behind`: the row of the log up to which `found` has all changes, if that
  /// is known.
  void find_changes(read_scope& found,
                    std::string_view name,
                    scope where,
                    std::int64_t behind = 0);
  std::optional<event_parts> find_parts(const session_key& key);
  read_scope find_past(const sqlite_past& past);
  std::vector<session_row> rows_of(const std::string& app,
                                   const std::vector<listed_session>& found);
  void collect_pending(read_scope& found, scope where, std::int64_t behind);
  static void apply_pending(read_scope& found, scope where);
  void read_keys(read_scope& found, scope where);
  // The part that has this revision.
  static const event_part& part_with(const event_parts& parts,
                                     std::int64_t revision);
  // The row of the log that made a revision of the session.
  std::int64_t row_of(const read_scope& session, std::int64_t revision);
  // The keys of an app or a user after the row `last` of the log.
  state_map shared_state_after(std::int64_t last, const owner_name& owner);
  std::vector<shared_entry> entries_since_snapshot(const read_scope& found,
                                                   std::int64_t last,
                                                   sqlite_snapshot& state);
  static shared_entry read_entry(const sqlite_rows& rows,
                                 std::int64_t scope_id,
                                 const std::optional<std::int64_t>& expected);
  void replay_unlisted(const read_scope& found,
                       scope where,
                       std::int64_t until,
                       std::int64_t last,
                       sqlite_snapshot& state);
  void replay_shared(std::int64_t log,
                     const read_scope& found,
                     scope where,
                     sqlite_snapshot& state);
  // The state of the session at `revision`, which `part` has.
  sqlite_snapshot state_at(const read_scope& session,
                           const read_scope& part,
                           std::int64_t revision);
  void replay(std::int64_t log,
              std::int64_t session,
              std::int64_t number,
              sqlite_snapshot& state);
  // The newest `count` events up to number `last`, newest first.
  std::vector<numbered_row> newest_rows(const event_parts& parts,
                                        std::size_t count,
                                        std::int64_t last,
                                        std::uint64_t after = 0);
  void add_newest_rows(const event_part& part,
                       std::size_t count,
                       std::int64_t kept_from,
                       std::int64_t last,
                       std::vector<numbered_row>& found);
  void load_events(const event_part& part,
                   std::int64_t first,
                   std::int64_t last,
                   std::vector<event_ptr>& loaded);
  void find_events(const event_part& part,
                   std::int64_t kept_from,
                   std::span<const std::string> ids,
                   std::vector<event_ptr>& events);
  static void next_entry(sqlite_rows& rows, std::int64_t number);
  event_ptr
  read_event(std::int64_t log, std::int64_t session, std::int64_t number);

  sqlite_shared& shared_; // Belongs to the store, which outlives this.
  sqlite_database database_;
  sqlite_log log_;
  sqlite_statement find_;
  sqlite_statement find_id_;
  sqlite_statement keys_;
  sqlite_statement newest_entries_;
  sqlite_statement entries_between_;
  sqlite_statement event_;
  sqlite_statement change_;
  sqlite_statement shared_change_;
  sqlite_statement shared_entries_;
  sqlite_statement shared_entry_behind_;
  sqlite_statement settled_ids_;
  sqlite_statement fresh_ids_;
  sqlite_session_list sessions_;
  sqlite_snapshots snapshots_;
  sqlite_pasts pasts_;
  sqlite_runs runs_;
  sqlite_watch
    watch_; // Declared after the statements, which read from the file.
  std::int64_t newest_ = 0;
  std::vector<log_row> unseen_; // Rows that the tail does not have yet.
};

} // namespace troupe
