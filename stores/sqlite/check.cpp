#include "troupe/stores/sqlite/check.hpp"

#include "troupe/stores/sqlite/runs.hpp"
#include "troupe/stores/sqlite/snapshots.hpp"
#include "troupe/stores/sqlite/sums.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <unordered_map>

namespace troupe {

namespace {

constexpr std::size_t findings_max = 1'000;

// Estimated share of the work that is done after each part.
constexpr double done_after_pages = 0.3;
constexpr double done_after_log = 0.8;

// Column of the body. The column after it says whether the body is sound.
constexpr int body = 12;

// The state of one scope according to the log.
struct replayed_scope {
  /// True for an app or a user, which have no time of their own.
  bool is_shared = false;
  /// True for a removed session whose events forks share.
  bool is_past = false;
  /// Newest revision that is replayed: of a past the newest that forks share.
  /// Later rows may be half deleted.
  std::int64_t last = std::numeric_limits<std::int64_t>::max();
  /// Oldest revision that a trimmed session keeps: the replay starts there.
  /// Some of the earlier rows are left for its forks.
  std::int64_t kept_from = std::numeric_limits<std::int64_t>::min();
  std::map<std::string, value, std::less<>> keys;
  std::int64_t revision = 0;
  std::int64_t microseconds = 0; ///< Newest time of a session's changes.
  /// Positions of a session's events in the log, by event number.
  std::map<std::int64_t, std::int64_t> events;
};

class checker {
public:
  checker(sqlite_reader& reader, const std::function<void(double)>& on_progress)
    : reader_(reader),
      on_progress_(on_progress),
      kept_(reader.database()),
      pasts_(reader.database()) {}

  std::vector<std::string> run() {
    const sqlite_reader::moment now(reader_);
    check_pages();
    check_progress();
    find_snapshots();
    find_scopes();
    find_pasts();
    find_first_states();
    replay_log();
    check_pasts();
    check_stray_snapshots();
    check_scopes();
    for (auto& finding : check_sqlite_runs(reader_.database()))
      find(std::move(finding));
    tell(1);
    return std::move(findings_);
  }

private:
  void tell(double done) const {
    if (on_progress_)
      on_progress_(done);
  }

  void find(std::string finding) {
    if (findings_.size() < findings_max)
      findings_.push_back(std::move(finding));
  }

  sqlite_statement prepare(std::string_view sql) const {
    return reader_.database().prepare(sql);
  }

  void check_pages() {
    auto statement = prepare("PRAGMA integrity_check");
    for (auto rows = statement.rows(); rows.next();)
      if (rows.text(0) != "ok")
        find(std::string(rows.text(0)));
    tell(done_after_pages);
  }

  void check_progress() {
    auto statement = prepare(fmt::format("SELECT name,{} FROM fold_places",
                                         is_sound("sum", sums::fold_places)));
    for (auto rows = statement.rows(); rows.next();)
      if (rows.integer(1) != 1)
        find(fmt::format(
          "the row '{}' of the table fold_places has a wrong checksum",
          rows.text(0)));
  }

  void find_scopes() {
    auto live = prepare("SELECT id,app,session FROM scopes");
    for (auto rows = live.rows(); rows.next();) {
      auto& scope = replayed_[rows.integer(0)];
      scope.is_shared = rows.text(2).empty();
      scope.revision = scope.is_shared ? 0 : -1;
      scope.is_past = rows.text(1).empty();
    }
  }

  // The log of a fork begins at the revision of its past.
  void find_pasts() {
    auto statement
      = prepare(fmt::format("SELECT scope,past,revision,{} FROM pasts",
                            is_sound("sum", sums::pasts)));
    for (auto rows = statement.rows(); rows.next();) {
      const auto fork = replayed_.find(rows.integer(0));
      if (rows.integer(3) != 1)
        find(fmt::format("the past of scope {} has a wrong checksum",
                         rows.integer(0)));
      else if (fork == replayed_.end())
        find(fmt::format("scope {} has a past, and does not exist",
                         rows.integer(0)));
      else
        fork->second.revision = rows.integer(2) - 1;
    }
    for (auto& [id, scope] : replayed_)
      if (scope.is_past)
        find_last_used(id, scope);
  }

  // If the first revision of a fork is in its past, the replay still begins at
  // its creation.
  void find_first_states() {
    auto statement = prepare("SELECT scope,revision FROM first_states");
    for (auto rows = statement.rows(); rows.next();) {
      const auto found = replayed_.find(rows.integer(0));
      if (found == replayed_.end())
        find(fmt::format(
          "first_states has a row of scope {}, which does not exist",
          rows.integer(0)));
      else if (rows.integer(1) > found->second.revision)
        start_from_first_state(rows.integer(0), found->second);
    }
  }

  void start_from_first_state(std::int64_t id, replayed_scope& scope) {
    try {
      const auto first = pasts_.first_state(id).value();
      scope.kept_from = scope.revision = first.revision;
      scope.microseconds = first.microseconds;
      first.keys.for_each([&](std::string_view name, const value& data) {
        scope.keys.emplace(name, data);
      });
    } catch (const std::exception& failure) {
      find(fmt::format("the oldest state of scope {}: {}", id, failure.what()));
    }
  }

  void find_last_used(std::int64_t id, replayed_scope& past) {
    try {
      const auto used = pasts_.last_used(id);
      past.last = used.value_or(-1);
      if (!used)
        find(fmt::format("scope {} is kept for forks, but has none", id));
    } catch (const error&) {
      past.last = -1; // The wrong checksum has been found.
    }
  }

  // A session that still exists is compared as a whole.
  void check_pasts() {
    auto statement = prepare("SELECT scope,past,revision FROM pasts");
    for (auto rows = statement.rows(); rows.next();) {
      const auto past = replayed_.find(rows.integer(1));
      if (past == replayed_.end())
        find(fmt::format("scope {}: the past that it shares, scope {}, is "
                         "missing",
                         rows.integer(0),
                         rows.integer(1)));
      else if (past->second.revision < rows.integer(2))
        find(fmt::format("scope {}: its past, scope {}, ends at revision {} "
                         "and not {}",
                         rows.integer(0),
                         rows.integer(1),
                         past->second.revision,
                         rows.integer(2)));
    }
  }

  void find_snapshots() {
    auto statement = prepare("SELECT scope,revision FROM snapshots");
    for (auto rows = statement.rows(); rows.next();)
      snapshots_[rows.integer(0)].insert(rows.integer(1));
  }

  // Compares the snapshot of this revision, if there is one.
  void check_snapshot(std::int64_t scope_id, const replayed_scope& replayed) {
    const auto of_scope = snapshots_.find(scope_id);
    if (of_scope == snapshots_.end()
        || of_scope->second.erase(replayed.revision) == 0)
      return;
    try {
      const auto kept = kept_.find(scope_id, replayed.revision);
      bool is_same
        = kept && kept->revision == replayed.revision
          && (replayed.is_shared || kept->microseconds == replayed.microseconds)
          && kept->keys.size() == replayed.keys.size();
      for (const auto& [name, expected] : replayed.keys) {
        const auto* const found = is_same ? kept->keys.find(name) : nullptr;
        is_same = found != nullptr && *found == expected;
        if (!is_same)
          break;
      }
      if (!is_same)
        find(fmt::format("the snapshot of scope {} at revision {} differs from "
                         "the replay of its log",
                         scope_id,
                         replayed.revision));
    } catch (const error& failure) {
      find(fmt::format("the snapshot of scope {} at revision {}: {}",
                       scope_id,
                       replayed.revision,
                       failure.message()));
    }
  }

  void check_stray_snapshots() {
    for (const auto& [scope_id, revisions] : snapshots_)
      if (const auto scope = replayed_.find(scope_id);
          scope != replayed_.end() && !scope->second.is_past
          && !revisions.empty()
          && *revisions.rbegin() > scope->second.kept_from)
        find(fmt::format("the snapshot of scope {} at revision {} has a "
                         "revision that its log does not have",
                         scope_id,
                         *revisions.rbegin()));
  }

  void replay_log() {
    auto log = prepare(fmt::format("SELECT {},body,{} FROM log ORDER BY id",
                                   sqlite_log::columns(),
                                   is_sound("body_sum", sums::log_body)));
    const auto all = std::max<std::int64_t>(reader_.newest(), 1);
    for (auto rows = log.rows(); rows.next();) {
      const auto row = sqlite_log::row_of(rows);
      if (!sqlite_log::is_sound(rows) || rows.integer(body + 1) != 1)
        find(fmt::format("log row {}: has a wrong checksum", row.number));
      replay(row, rows);
      if (row.number % 4'096 == 0)
        tell(done_after_pages
             + (done_after_log - done_after_pages)
                 * static_cast<double>(row.number) / static_cast<double>(all));
    }
    tell(done_after_log);
  }

  void replay(const log_row& row, const sqlite_rows& columns) {
    const auto changed = decode_delta(row.delta);
    if (!changed)
      find(
        fmt::format("log row {}: {}", row.number, changed.error().message()));
    for (std::size_t index = 0; index < durable_scopes; ++index) {
      const auto found = replayed_.find(row.scopes[index]);
      if (found == replayed_.end())
        continue;
      auto& replayed = found->second;
      if (row.revisions[index] > replayed.last
          || row.revisions[index] <= replayed.kept_from)
        continue;
      if (row.revisions[index] != replayed.revision + 1)
        find(fmt::format("log row {}: brings scope {} to revision {}, which "
                         "is at {}",
                         row.number,
                         row.scopes[index],
                         row.revisions[index],
                         replayed.revision));
      replayed.revision = row.revisions[index];
      if (changed)
        for (const auto& done : changed->share(static_cast<scope>(index))) {
          if (done.operand.is_null())
            replayed.keys.erase(done.name);
          else
            replayed.keys.insert_or_assign(done.name, done.operand);
        }
      if (index == 0)
        replayed.microseconds
          = row.kind == change_kind::create
              ? row.microseconds
              : std::max(replayed.microseconds, row.microseconds);
      check_snapshot(row.scopes[index], replayed);
      if (index == 0 && row.kind == change_kind::append) {
        replayed.events.emplace(row.revisions[0], row.number);
        check_event(row, columns);
      }
    }
  }

  void check_event(const log_row& row, const sqlite_rows& columns) {
    const auto said = decode({columns.text(9),
                              row.microseconds,
                              columns.text(body),
                              columns.text(10)});
    if (!said)
      find(fmt::format("log row {}: {}", row.number, said.error().message()));
  }

  void check_scopes() {
    std::vector<std::pair<std::int64_t, owner_name>> owners;
    auto statement = prepare("SELECT id,app,user,session FROM scopes");
    for (auto rows = statement.rows(); rows.next();)
      owners.emplace_back(rows.integer(0),
                          owner_name{std::string(rows.text(1)),
                                     std::string(rows.text(2)),
                                     std::string(rows.text(3))});
    std::size_t done = 0;
    for (const auto& [id, owner] : owners) {
      if (owner.app.empty())
        check_past(id, replayed_[id]);
      else
        check_scope(owner, replayed_[id]);
      if (++done % 256 == 0)
        tell(done_after_log
             + (1 - done_after_log) * static_cast<double>(done)
                 / static_cast<double>(owners.size()));
    }
  }

  void check_scope(const owner_name& owner, const replayed_scope& replayed) {
    std::optional<read_scope> read;
    try {
      read = reader_.read(owner);
    } catch (const error& failure) {
      find(fmt::format("{}: {}", to_string(owner), failure.message()));
      return;
    }
    if (!read) {
      find(fmt::format("{}: is not found by its name", to_string(owner)));
      return;
    }
    if (read->revision != replayed.revision)
      find(fmt::format("{}: is at revision {}, its log at {}",
                       to_string(owner),
                       read->revision,
                       replayed.revision));
    check_keys(owner, read->keys, replayed);
    if (owner.where() == scope::session)
      check_entries(to_string(owner), *read, replayed);
    else
      check_shared_entries(owner, *read);
  }

  // Only its events are read, and only those that forks share.
  void check_past(std::int64_t id, const replayed_scope& replayed) {
    if (replayed.last < 0)
      return; // No fork uses it, which has been found.
    try {
      if (const auto read = reader_.find_session(id))
        check_entries(fmt::format("scope {}", id), *read, replayed);
    } catch (const error& failure) {
      find(failure.message());
    }
  }

  void check_keys(const owner_name& owner,
                  const state_map& keys,
                  const replayed_scope& replayed) {
    for (const auto& [name, expected] : replayed.keys) {
      const auto* found = keys.find(name);
      if (found == nullptr || !(*found == expected))
        find(fmt::format("{}: the key '{}' differs from the replay of its log",
                         to_string(owner),
                         name));
    }
    if (keys.size() > replayed.keys.size())
      keys.for_each([&](std::string_view name, const value&) {
        if (!replayed.keys.contains(name))
          find(fmt::format("{}: the key '{}' is in no row of its log",
                           to_string(owner),
                           name));
      });
  }

  void check_entries(const std::string& name,
                     const read_scope& read,
                     const replayed_scope& replayed) {
    std::map<std::int64_t, std::int64_t> found;
    auto next = std::max(read.first, replayed.kept_from + 1);
    auto entries = prepare(fmt::format(
      "SELECT number,log,id_hash,{0} FROM settled_entries WHERE scope=?1"
      " UNION ALL SELECT number,log,id_hash,{0} FROM fresh_entries"
      " WHERE scope=?1 ORDER BY number",
      is_sound("sum", sums::entries)));
    for (auto rows = entries.rows(read.id); rows.next();) {
      const auto number = rows.integer(0);
      if (number > replayed.last)
        break;
      if (number <= replayed.kept_from)
        continue;
      if (number != next++ || rows.integer(3) != 1)
        find(fmt::format(
          "{}: its entry {} is damaged or out of order", name, number));
      if (!rows.is_null(2) && !found.emplace(number, rows.integer(1)).second)
        find(fmt::format("{}: its event {} is listed twice", name, number));
    }
    for (const auto& change : read.pending)
      if (change.id_hash && change.revision <= replayed.last
          && change.revision > replayed.kept_from)
        found.emplace(change.revision, change.row);
    if (found != replayed.events)
      find(fmt::format("{}: {} of its events are found, its log has {}, or "
                       "their positions differ",
                       name,
                       found.size(),
                       replayed.events.size()));
  }

  // The entries of an app or a user lead to all folded changes, or to all that
  // were folded since the file got its present layout.
  void check_shared_entries(const owner_name& owner, const read_scope& read) {
    auto entries
      = prepare(fmt::format("SELECT log,number,logs,{} FROM shared_entries"
                            " WHERE scope=?1 ORDER BY log",
                            is_sound("sum", sums::shared_entries)));
    auto row = prepare(fmt::format(
      "SELECT 1 FROM log WHERE id=?1 AND {0}=?2 AND {0}_revision=?3",
      owner.where() == scope::user ? "user" : "app"));
    std::optional<std::int64_t> last;
    for (auto rows = entries.rows(read.id); rows.next();) {
      const auto number = rows.integer(1);
      if (rows.integer(3) != 1
          || !leads_to(row, read.id, number, rows.text(2), last))
        find(fmt::format("{}: its entry {} is damaged or out of order",
                         to_string(owner),
                         number));
      last = number;
    }
    if (last && *last != read.folded_revision)
      find(fmt::format("{}: its entries end at revision {} and not {}",
                       to_string(owner),
                       *last,
                       read.folded_revision));
  }

  // Returns true if the entry `number` begins after revision `last`, and each
  // of its positions is that of the next change.
  static bool leads_to(sqlite_statement& row,
                       std::int64_t scope_id,
                       std::int64_t number,
                       std::string_view logs,
                       const std::optional<std::int64_t>& last) {
    try {
      const shared_entry entry{number, decode_logs(logs)};
      auto revision = entry.base();
      if (last && *last != revision)
        return false;
      return std::ranges::all_of(entry.logs, [&](std::int64_t log) {
        return row.rows(log, scope_id, ++revision).next();
      });
    } catch (const error&) {
      return false;
    }
  }

  sqlite_reader& reader_;                          // The caller's.
  const std::function<void(double)>& on_progress_; // The caller's.
  sqlite_snapshots kept_;
  sqlite_pasts pasts_;
  // Revisions of the snapshots by scope.
  std::unordered_map<std::int64_t, std::set<std::int64_t>> snapshots_;
  std::unordered_map<std::int64_t, replayed_scope> replayed_;
  std::vector<std::string> findings_;
};

} // namespace

std::vector<std::string>
check_sqlite_store(sqlite_reader& reader,
                   const std::function<void(double)>& on_progress) {
  return checker(reader, on_progress).run();
}

} // namespace troupe
