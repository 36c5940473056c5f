#include "troupe/stores/sqlite/snapshots.hpp"

#include "troupe/stores/shared/stored_event.hpp"
#include "troupe/stores/sqlite/sums.hpp"

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace troupe {

namespace {

// Revisions from one snapshot to the next. The replay of so many rows takes a
// few milliseconds.
constexpr std::int64_t stride_min = 512;

// True if a multiple of `stride` is in `first` to `last`.
bool passes(std::int64_t first, std::int64_t last, std::int64_t stride) {
  return (first - 1) / stride != last / stride;
}

// Appends `"name":value` to an object that is being written.
void append_key(std::string& object,
                std::string_view name,
                std::string_view value_text) {
  object += object.empty() ? '{' : ',';
  append_text(object, value(json(name))).value();
  object += ':';
  object += value_text;
}

} // namespace

sqlite_snapshots::sqlite_snapshots(const sqlite_database& database)
  : count_keys_(database.prepare("SELECT keys FROM scopes WHERE id=?1")),
    keys_(database.prepare("SELECT key,value FROM state WHERE scope=?1")),
    add_(database.prepare(
      "INSERT OR REPLACE INTO snapshots SELECT ?1,?2,updated,?3,"
      "row_sum(?1,?2,updated,?3) FROM scopes WHERE id=?1")),
    find_(database.prepare(
      fmt::format("SELECT revision,updated,keys,{} FROM snapshots"
                  " WHERE scope=?1 AND revision<=?2"
                  " ORDER BY revision DESC LIMIT 1",
                  is_sound("sum", sums::snapshots)))) {}

void sqlite_snapshots::note(std::int64_t session,
                            std::int64_t first,
                            std::int64_t last) {
  if (!passes(first, last, stride_min)
      || !passes(first, last, stride_of(session)))
    return;
  std::string object;
  for (auto rows = keys_.rows(session); rows.next();)
    append_key(object, rows.text(0), rows.text(1));
  object += object.empty() ? "{}" : "}";
  add_.run(session, last, std::string_view(object));
}

// A snapshot of many keys costs as much as the replay of as many rows.
std::int64_t sqlite_snapshots::stride_of(std::int64_t session) {
  auto stride = stride_min;
  if (auto rows = count_keys_.rows(session); rows.next())
    while (stride < rows.integer(0))
      stride *= 2;
  return stride;
}

std::optional<sqlite_snapshot> sqlite_snapshots::find(std::int64_t session,
                                                      std::int64_t revision) {
  auto rows = find_.rows(session, revision);
  if (!rows.next())
    return std::nullopt;
  rows.expect_sound(3, "snapshots");
  sqlite_snapshot found{rows.integer(0), rows.integer(1), {}};
  const auto kept = decode_delta(rows.text(2)).value();
  for (const auto& set : kept.share(scope::session))
    found.keys.set(set.name, set.operand);
  return found;
}

} // namespace troupe
