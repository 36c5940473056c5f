#include "troupe/stores/sqlite/runs.hpp"

#include "troupe/stores/shared/run_table.hpp"
#include "troupe/stores/sqlite/sums.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>

namespace troupe {

namespace {

timestamp now_here() {
  return std::chrono::floor<std::chrono::microseconds>(
    std::chrono::system_clock::now());
}

std::int64_t run_micros(timestamp time) {
  return time.time_since_epoch().count();
}

// A sign of life in the future: the clock was set back. A process that lives
// renews it soon.
std::optional<std::chrono::microseconds>
silence_at(std::int64_t now, std::optional<std::int64_t> renewed) {
  if (!renewed)
    return std::nullopt;
  return std::chrono::microseconds(std::abs(now - *renewed));
}

// The order of the index, so that a page reads only its rows. The first
// condition alone can use the index.
std::string select(std::string_view where) {
  return fmt::format(
    "SELECT s.app,s.user,s.session,r.invocation,r.agent,r.holder,r.opened,"
    "h.renewed,"
    "r.sum IS row_sum(r.scope,r.invocation,r.agent,r.holder,r.opened),"
    "h.id IS NULL OR h.sum IS row_sum(h.id,h.renewed)"
    " FROM open_runs AS r JOIN scopes AS s ON s.id=r.scope"
    " LEFT JOIN run_holders AS h ON h.id=r.holder"
    " WHERE r.opened>=?1"
    " AND (r.opened,r.invocation,s.app,s.user,s.session)>(?1,?2,?3,?4,?5)"
    " AND {} ORDER BY r.opened,r.invocation,s.app,s.user,s.session LIMIT ?6",
    where);
}

} // namespace

sqlite_runs::sqlite_runs(const sqlite_database& database)
  : open_(database.prepare(
    "INSERT INTO open_runs VALUES(?1,?2,?3,?4,?5,row_sum(?1,?2,?3,?4,?5))"
    " ON CONFLICT(scope,invocation) DO UPDATE SET agent=?3,holder=?4,"
    "sum=row_sum(scope,invocation,?3,?4,opened)")),
    hand_over_(
      database.prepare("UPDATE open_runs SET agent=?3,holder=?4,"
                       "sum=row_sum(scope,invocation,?3,?4,opened)"
                       " WHERE scope=?1 AND invocation=?2 AND holder=?5")),
    close_(database.prepare("DELETE FROM open_runs WHERE scope=?1"
                            " AND invocation=?2 AND (?3='' OR holder=?3)")),
    of_session_(database.prepare(
      "SELECT r.invocation,r.holder,h.renewed,"
      "r.sum IS row_sum(r.scope,r.invocation,r.agent,r.holder,r.opened),"
      "h.id IS NULL OR h.sum IS row_sum(h.id,h.renewed)"
      " FROM open_runs AS r LEFT JOIN run_holders AS h ON h.id=r.holder"
      " WHERE r.scope=?1")),
    erase_(database.prepare("DELETE FROM open_runs WHERE scope=?1")),
    renew_(database.prepare("INSERT OR REPLACE INTO run_holders"
                            " VALUES(?1,?2,row_sum(?1,?2))")),
    forget_silent_(database.prepare(
      "DELETE FROM run_holders WHERE renewed<?1"
      " AND NOT EXISTS (SELECT 1 FROM open_runs WHERE holder=run_holders.id)")),
    forget_(database.prepare("DELETE FROM run_holders WHERE id=?1")),
    list_(database.prepare(select("(?7='' OR s.app=?7)"))),
    list_session_(
      database.prepare(select("s.app=?7 AND s.user=?8 AND s.session=?9"))) {}

void sqlite_runs::apply(std::int64_t session, std::span<const run_mark> marks) {
  const auto now = run_micros(now_here());
  std::string_view seen;
  for (const auto& mark : marks) {
    if (!mark.opens) {
      close_.run(session, mark.invocation_id, mark.holder);
      continue;
    }
    if (mark.held_by)
      hand_over_.run(
        session, mark.invocation_id, mark.agent, mark.holder, *mark.held_by);
    else
      open_.run(session, mark.invocation_id, mark.agent, mark.holder, now);
    if (mark.holder != seen)
      note_life(mark.holder, now);
    seen = mark.holder;
  }
}

void sqlite_runs::add_to(run_gate& gate,
                         const owner_name& name,
                         std::int64_t session) {
  const auto now = run_micros(now_here());
  for (auto rows = of_session_.rows(session); rows.next();) {
    rows.expect_sound(3, "open_runs");
    rows.expect_sound(4, "run_holders");
    gate.add(name,
             std::string(rows.text(0)),
             std::string(rows.text(1)),
             silence_at(now, rows.maybe_integer(2)));
  }
}

void sqlite_runs::note_life(std::string_view holder, std::int64_t now) {
  renew_.run(holder, now);
}

void sqlite_runs::renew(std::string_view holder) {
  const auto now = now_here();
  note_life(holder, run_micros(now));
  forget_silent_.run(run_micros(now - silent_holder_kept));
}

std::vector<open_run> sqlite_runs::list(const run_query& query) {
  const auto now = run_micros(now_here());
  const auto behind
    = query.behind.value_or(run_position{timestamp::min(), {}, {}});
  const auto opened = run_micros(behind.opened);
  const auto limit = static_cast<std::int64_t>(std::min<std::uint64_t>(
    query.limit, std::numeric_limits<std::int64_t>::max()));
  const auto& from = behind.key;
  auto rows = query.session ? list_session_.rows(opened,
                                                 behind.invocation_id,
                                                 from.app,
                                                 from.user,
                                                 from.id,
                                                 limit,
                                                 query.session->app,
                                                 query.session->user,
                                                 query.session->id)
                            : list_.rows(opened,
                                         behind.invocation_id,
                                         from.app,
                                         from.user,
                                         from.id,
                                         limit,
                                         query.app);
  std::vector<open_run> found;
  while (rows.next()) {
    rows.expect_sound(8, "open_runs");
    rows.expect_sound(9, "run_holders");
    auto& listed = found.emplace_back();
    listed.key = {std::string(rows.text(0)),
                  std::string(rows.text(1)),
                  std::string(rows.text(2))};
    listed.invocation_id = rows.text(3);
    listed.agent = rows.text(4);
    listed.holder = rows.text(5);
    listed.opened = timestamp(std::chrono::microseconds(rows.integer(6)));
    listed.silent = silence_at(now, rows.maybe_integer(7));
  }
  return found;
}

std::vector<std::string> check_sqlite_runs(const sqlite_database& database) {
  std::vector<std::string> findings;
  auto runs = database.prepare(
    fmt::format("SELECT invocation,{},scope IN (SELECT id FROM scopes"
                " WHERE session<>'' AND app<>'') FROM open_runs",
                is_sound("sum", sums::open_runs)));
  for (auto rows = runs.rows(); rows.next();) {
    if (rows.integer(1) != 1)
      findings.push_back(
        fmt::format("the open run '{}' has a wrong checksum", rows.text(0)));
    else if (rows.integer(2) != 1)
      findings.push_back(fmt::format(
        "the open run '{}' belongs to no existing session", rows.text(0)));
  }
  auto holders = database.prepare(fmt::format(
    "SELECT id,{} FROM run_holders", is_sound("sum", sums::run_holders)));
  for (auto rows = holders.rows(); rows.next();)
    if (rows.integer(1) != 1)
      findings.push_back(fmt::format(
        "the holder '{}' of runs has a wrong checksum", rows.text(0)));
  return findings;
}

} // namespace troupe
