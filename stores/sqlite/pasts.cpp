#include "troupe/stores/sqlite/pasts.hpp"

#include "troupe/stores/shared/stored_event.hpp"
#include "troupe/stores/sqlite/sums.hpp"

#include <fmt/format.h>

namespace troupe {

sqlite_pasts::sqlite_pasts(const sqlite_database& database)
  : find_(database.prepare(
    fmt::format("SELECT past,revision,{} FROM pasts WHERE scope=?1",
                is_sound("sum", sums::pasts)))),
    add_(
      database.prepare("INSERT INTO pasts VALUES(?1,?2,?3,row_sum(?1,?2,?3))")),
    last_used_(
      database.prepare(fmt::format("SELECT revision,{} FROM pasts WHERE past=?1"
                                   " ORDER BY revision DESC LIMIT 1",
                                   is_sound("sum", sums::pasts)))),
    erase_(database.prepare("DELETE FROM pasts WHERE scope=?1")),
    find_first_(database.prepare(
      fmt::format("SELECT revision,updated,delta,{} FROM first_states"
                  " WHERE scope=?1",
                  is_sound("sum", sums::first_states)))),
    trim_(database.prepare("INSERT OR REPLACE INTO first_states"
                           " VALUES(?1,?2,?3,?4,row_sum(?1,?2,?3,?4))")),
    copy_first_(database.prepare(
      "INSERT INTO first_states SELECT ?1,revision,updated,delta,"
      "row_sum(?1,revision,updated,delta) FROM first_states WHERE scope=?2")),
    erase_first_(database.prepare("DELETE FROM first_states WHERE scope=?1")) {}

std::optional<sqlite_past> sqlite_pasts::find(std::int64_t session) {
  auto rows = find_.rows(session);
  if (!rows.next())
    return std::nullopt;
  rows.expect_sound(2, "pasts");
  return sqlite_past{rows.integer(0), rows.integer(1)};
}

// Forks of a fork at its own beginning do not keep it alive, and do not make
// the chain of pasts longer.
void sqlite_pasts::add(std::int64_t session, sqlite_past past) {
  for (auto below = find(past.scope); below && below->revision >= past.revision;
       below = find(past.scope))
    past.scope = below->scope;
  add_.run(session, past.scope, past.revision);
}

std::int64_t sqlite_pasts::first_revision(std::int64_t session) {
  auto rows = find_first_.rows(session);
  if (!rows.next())
    return 0;
  rows.expect_sound(3, "first_states");
  return rows.integer(0);
}

std::optional<sqlite_snapshot> sqlite_pasts::first_state(std::int64_t session) {
  auto rows = find_first_.rows(session);
  if (!rows.next())
    return std::nullopt;
  rows.expect_sound(3, "first_states");
  sqlite_snapshot state{rows.integer(0), rows.integer(1), {}};
  const auto keys = decode_delta(rows.text(2)).value();
  for (const auto& key : keys.share(scope::session))
    state.keys.set(key.name, key.operand);
  return state;
}

void sqlite_pasts::trim(std::int64_t session,
                        std::int64_t revision,
                        std::int64_t microseconds,
                        std::string_view delta) {
  trim_.run(session, revision, microseconds, delta);
}

void sqlite_pasts::copy_first(std::int64_t fork, std::int64_t parent) {
  copy_first_.run(fork, parent);
}

std::optional<std::int64_t> sqlite_pasts::last_used(std::int64_t scope_id) {
  auto rows = last_used_.rows(scope_id);
  if (!rows.next())
    return std::nullopt;
  rows.expect_sound(1, "pasts");
  return rows.integer(0);
}

} // namespace troupe
