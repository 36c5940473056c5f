#include "troupe/stores/sqlite/purge.hpp"

#include "troupe/stores/shared/stored_event.hpp"
#include "troupe/stores/sqlite/sums.hpp"

#include <fmt/format.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

namespace {

// The number of no entry: all are deleted.
constexpr std::int64_t none_kept = -1;

// `range::end` of a removed scope: all entries.
constexpr auto no_end = std::numeric_limits<std::int64_t>::max();

} // namespace

sqlite_purge::sqlite_purge(const sqlite_database& database, sqlite_pasts& pasts)
  : pasts_(pasts),
    add_(database.prepare("INSERT OR REPLACE INTO purges VALUES(?1,?2)")),
    next_(database.prepare("SELECT scope FROM purges WHERE log<=?1 LIMIT 1")),
    done_(database.prepare("DELETE FROM purges WHERE scope=?1")),
    entries_(database.prepare(
      "SELECT number,log FROM settled_entries WHERE scope=?1 AND number>?2"
      " AND number<?3 UNION ALL SELECT number,log FROM fresh_entries"
      " WHERE scope=?1 AND number>?2 AND number<?3 LIMIT ?4")),
    erase_entry_(database.prepare(
      "DELETE FROM settled_entries WHERE scope=?1 AND number=?2")),
    erase_fresh_entry_(database.prepare(
      "DELETE FROM fresh_entries WHERE scope=?1 AND number=?2")),
    add_entry_(
      database.prepare("INSERT OR REPLACE INTO settled_entries"
                       " VALUES(?1,?2,?3,NULL,row_sum(?1,?2,?3,NULL))")),
    forget_id_{database.prepare("UPDATE settled_entries SET id_hash=NULL,"
                                "sum=row_sum(scope,number,log,NULL)"
                                " WHERE scope=?1 AND number=?2"),
               database.prepare("UPDATE fresh_entries SET id_hash=NULL,"
                                "sum=row_sum(scope,number,log,NULL)"
                                " WHERE scope=?1 AND number=?2")},
    find_end_(database.prepare(
      "SELECT log FROM settled_entries WHERE scope=?1 AND number=?2 UNION ALL"
      " SELECT log FROM fresh_entries WHERE scope=?1 AND number=?2")),
    forget_event_(database.prepare(
      "UPDATE log SET event=NULL,body=NULL,"
      "head_sum=row_sum(id,kind,session,user,app,session_revision,"
      "user_revision,app_revision,time,NULL,delta),body_sum=row_sum(id,NULL)"
      " WHERE id=?1")),
    find_state_(
      database.prepare("SELECT key FROM state WHERE scope=?1 LIMIT ?2")),
    erase_state_(
      database.prepare("DELETE FROM state WHERE scope=?1 AND key=?2")),
    erase_snapshots_(database.prepare(
      "DELETE FROM snapshots WHERE scope=?1 AND revision IN"
      " (SELECT revision FROM snapshots WHERE scope=?1 AND revision>?2"
      " AND revision<?3 LIMIT ?4)")),
    erase_shared_entries_(database.prepare(
      "DELETE FROM shared_entries WHERE scope=?1 AND log IN"
      " (SELECT log FROM shared_entries WHERE scope=?1 LIMIT ?2)")),
    find_scope_(database.prepare("SELECT app FROM scopes WHERE id=?1")),
    forget_keys_(database.prepare(
      "UPDATE scopes SET keys=0,"
      "sum=row_sum(app,user,session,revision,updated,0) WHERE id=?1")),
    find_row_(database.prepare(
      fmt::format("SELECT session,user,app,user_revision,delta,{} FROM log"
                  " WHERE id=?1",
                  is_sound("head_sum", sums::log_head)))),
    keep_row_(database.prepare(
      "UPDATE log SET session=NULL,session_revision=NULL,user=?2,"
      "user_revision=?3,event=NULL,delta=?4,body=NULL,"
      "head_sum=row_sum(id,kind,NULL,?2,app,NULL,?3,app_revision,time,NULL,?4),"
      "body_sum=row_sum(id,NULL) WHERE id=?1")),
    erase_row_(
      database.prepare("DELETE FROM log WHERE id=?1 AND mark IS NULL")) {}

void sqlite_purge::add(std::int64_t scope_id, std::int64_t log) {
  add_.run(scope_id, log);
}

void sqlite_purge::work(std::int64_t rows, std::int64_t folded) {
  while (rows > 0) {
    std::int64_t id = 0;
    {
      auto found = next_.rows(folded);
      if (!found.next())
        return;
      id = found.integer(0);
    }
    const auto doomed = range_of(id);
    const bool is_removed = doomed.end == no_end;
    if (!clear_entries(id, doomed, rows))
      return;
    if (is_removed)
      clear_keys(id, rows);
    else
      clear_end(id, doomed);
    // A snapshot may be as large as many other rows.
    constexpr std::int64_t rows_per_snapshot = 32;
    if (rows > 0)
      rows -= rows_per_snapshot
              * erase_snapshots_.run(
                id, doomed.kept, doomed.end, 1 + rows / rows_per_snapshot);
    if (rows > 0 && is_removed)
      rows -= erase_shared_entries_.run(id, rows);
    if (rows <= 0)
      return;
    if (is_removed && doomed.kept != none_kept)
      forget_keys_.run(id);
    done_.run(id);
  }
}

void sqlite_purge::clear_keys(std::int64_t scope_id, std::int64_t& left) {
  std::vector<std::string> keys;
  {
    auto found = find_state_.rows(scope_id, left);
    while (found.next())
      keys.emplace_back(found.text(0));
  }
  for (const auto& key : keys)
    erase_state_.run(scope_id, std::string_view(key));
  left -= std::ssize(keys) + 1;
}

// Returns the entries to delete: none that forks share, and none from the first
// revision of an existing session on.
sqlite_purge::range sqlite_purge::range_of(std::int64_t scope_id) {
  bool has_name = false;
  {
    auto found = find_scope_.rows(scope_id);
    if (!found.next())
      return {none_kept, no_end};
    has_name = !found.text(0).empty();
  }
  const auto used = pasts_.last_used(scope_id);
  if (!has_name) {
    if (!used)
      throw error(
        errc::corrupt,
        fmt::format("scope {} is kept for forks, but has none", scope_id));
    return {*used, no_end};
  }
  const auto first = pasts_.first_revision(scope_id);
  if (first == 0)
    throw error(
      errc::corrupt,
      fmt::format("scope {} is listed for deletion, but exists", scope_id));
  return {used.value_or(none_kept), first};
}

// The row that made the oldest revision stays, without its event: it tells
// which state the user and the app had then.
void sqlite_purge::clear_end(std::int64_t scope_id, range doomed) {
  if (doomed.kept >= doomed.end)
    return;
  std::int64_t log = 0;
  {
    auto found = find_end_.rows(scope_id, doomed.end);
    if (!found.next())
      return; // It is in the past that the session shares.
    log = found.integer(0);
  }
  for (auto& forget : forget_id_)
    forget.run(scope_id, doomed.end);
  forget_event_.run(log);
}

// Returns true if no entries are left.
bool sqlite_purge::clear_entries(std::int64_t scope_id,
                                 range doomed,
                                 std::int64_t& left) {
  std::vector<std::pair<std::int64_t, std::int64_t>> entries;
  {
    auto found = entries_.rows(scope_id, doomed.kept, doomed.end, left);
    while (found.next())
      entries.emplace_back(found.integer(0), found.integer(1));
  }
  for (const auto& [number, log] : entries) {
    clear_row(scope_id, log);
    erase_entry_.run(scope_id, number);
    erase_fresh_entry_.run(scope_id, number);
  }
  left -= std::ssize(entries);
  return left > 0;
}

// Deletes a row, or keeps the part that belongs to owners that still exist:
// their log must replay to their state. The newest row is never among them,
// since the removal itself comes later; so row numbers are not reused.
void sqlite_purge::clear_row(std::int64_t scope_id, std::int64_t number) {
  std::optional<std::int64_t> user;
  std::optional<std::int64_t> user_revision;
  std::optional<std::int64_t> app;
  delta changed;
  {
    auto found = find_row_.rows(number);
    if (!found.next())
      return;
    // A damaged row is left for `check` to report. An error here would stop all
    // commits because of a row that is not read any more.
    if (found.integer(5) != 1)
      return;
    user = found.maybe_integer(1);
    app = found.maybe_integer(2);
    user_revision = found.maybe_integer(3);
    changed = decode_delta(found.text(4)).value();
  }
  if (user && (*user == scope_id || !is_live(*user))) {
    user.reset();
    user_revision.reset();
    changed.drop(scope::user);
  }
  // The last row of a commit stays, empty, because of its mark.
  if (!user && !app && erase_row_.run(number) == 1)
    return;
  changed.drop(scope::session);
  std::string text;
  encode(changed, text).value();
  keep_row_.run(number,
                user,
                user_revision,
                text.empty() ? std::nullopt
                             : std::optional<std::string_view>(text));
  // The entry makes the row findable when the user is removed.
  if (user)
    add_entry_.run(*user, *user_revision, number);
}

bool sqlite_purge::is_live(std::int64_t scope_id) {
  return find_scope_.rows(scope_id).next();
}

} // namespace troupe
