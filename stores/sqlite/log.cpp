#include "troupe/stores/sqlite/log.hpp"

#include "troupe/stores/sqlite/sums.hpp"

#include <fmt/format.h>

namespace troupe {

namespace {

// Column after those of the row itself.
constexpr int soundness = 11;

} // namespace

sqlite_log::sqlite_log(const sqlite_database& database)
  : insert_(database.prepare(
    "INSERT INTO log VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,"
    "row_sum(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11),row_sum(?1,?12),NULL)")),
    newest_(database.prepare("SELECT max(id) FROM log")),
    set_mark_(database.prepare("UPDATE log SET mark=?2 WHERE id=?1")),
    mark_of_(database.prepare("SELECT mark FROM log WHERE id=?1")),
    folded_(database.prepare(
      fmt::format("SELECT value,{} FROM fold_places WHERE name='folded'",
                  troupe::is_sound("sum", sums::fold_places)))),
    behind_(database.prepare(
      fmt::format("SELECT {} FROM log WHERE id>?1 ORDER BY id", columns()))) {}

std::string sqlite_log::columns() {
  return fmt::format(
    "id,kind,session,user,app,session_revision,user_revision,app_revision,time,"
    "event,delta,{}",
    troupe::is_sound("head_sum", sums::log_head));
}

void sqlite_log::append(const log_row& row, const stored_event* text) {
  std::array<std::optional<std::int64_t>, durable_scopes> scopes;
  std::array<std::optional<std::int64_t>, durable_scopes> revisions;
  for (std::size_t index = 0; index < durable_scopes; ++index) {
    if (row.scopes[index] == 0)
      continue;
    scopes[index] = row.scopes[index];
    if (text != nullptr)
      revisions[index] = row.revisions[index];
  }
  std::optional<std::string_view> id;
  std::optional<std::string_view> changed;
  std::optional<std::string_view> body;
  if (text != nullptr) {
    if (!text->delta.empty())
      changed = text->delta;
    if (row.kind == change_kind::append) {
      id = text->id;
      body = text->body;
    }
  }
  insert_.run(row.number,
              static_cast<std::int64_t>(row.kind),
              scopes[0],
              scopes[1],
              scopes[2],
              revisions[0],
              revisions[1],
              revisions[2],
              row.microseconds,
              id,
              changed,
              body);
}

std::int64_t sqlite_log::newest() {
  auto found = newest_.rows();
  return found.next() ? found.integer(0) : 0;
}

std::optional<std::int64_t> sqlite_log::mark_of(std::int64_t number) {
  auto found = mark_of_.rows(number);
  return found.next() ? found.maybe_integer(0) : std::nullopt;
}

std::int64_t sqlite_log::folded() {
  auto found = folded_.rows();
  if (!found.next())
    throw error(errc::corrupt,
                "the table fold_places has lost its row 'folded'");
  found.expect_sound(1, "fold_places");
  return found.integer(0);
}

bool sqlite_log::is_sound(const sqlite_rows& rows) {
  return rows.integer(soundness) == 1;
}

void sqlite_log::expect_sound(const sqlite_rows& rows) {
  rows.expect_sound(soundness, "log");
}

void sqlite_log::expect_number(const log_row& row, std::int64_t number) {
  if (row.number != number)
    throw error(errc::corrupt,
                fmt::format("row {} of the log is missing", number));
}

log_row sqlite_log::row_of(const sqlite_rows& rows) {
  log_row row;
  row.number = rows.integer(0);
  row.kind = static_cast<change_kind>(rows.integer(1));
  for (int index = 0; index < static_cast<int>(durable_scopes); ++index) {
    if (rows.is_null(2 + index) || rows.is_null(5 + index))
      continue;
    row.scopes[static_cast<std::size_t>(index)] = rows.integer(2 + index);
    row.revisions[static_cast<std::size_t>(index)] = rows.integer(5 + index);
  }
  row.microseconds = rows.integer(8);
  if (!rows.is_null(9))
    row.id_hash = id_hash(rows.text(9));
  row.delta = rows.text(10);
  return row;
}

} // namespace troupe
