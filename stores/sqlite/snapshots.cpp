#include "troupe/stores/sqlite/snapshots.hpp"

#include "troupe/stores/shared/stored_event.hpp"
#include "troupe/stores/sqlite/sums.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

namespace troupe {

namespace {

// Revisions from one snapshot to the next. The replay of so many rows takes a
// few milliseconds.
constexpr std::int64_t stride_min = 512;

// Bytes of a snapshot per revision since the one before. An event has some
// hundreds, and makes a revision of up to three scopes, so snapshots add less
// than half to a file, and usually far less.
constexpr std::int64_t bytes_per_revision = 64;

// A larger one would make the commit that writes it slow.
constexpr std::int64_t bytes_max = std::int64_t{16} << 20U;

// True if a multiple of `stride` is in `first` to `last`.
bool passes(std::int64_t first, std::int64_t last, std::int64_t stride) {
  return (first - 1) / stride != last / stride;
}

// The largest stride, a power of two, of which a multiple is in `first` to
// `last`; 0 if it would be below `stride_min`.
std::int64_t largest_stride(std::int64_t first, std::int64_t last) {
  std::int64_t stride = 0;
  for (auto next = stride_min; passes(first, last, next); next *= 2)
    stride = next;
  return stride;
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
  : count_keys_(database.prepare(fmt::format(
    "SELECT keys,{} FROM scopes WHERE id=?1", is_sound("sum", sums::scopes)))),
    keys_(database.prepare(
      fmt::format("SELECT key,value,{} FROM state WHERE scope=?1",
                  is_sound("sum", sums::state)))),
    add_(database.prepare(
      "INSERT OR REPLACE INTO snapshots SELECT ?1,?2,updated,?3,"
      "row_sum(?1,?2,updated,?3) FROM scopes WHERE id=?1")),
    find_(database.prepare(
      fmt::format("SELECT revision,updated,keys,{} FROM snapshots"
                  " WHERE scope=?1 AND revision<=?2"
                  " ORDER BY revision DESC LIMIT 1",
                  is_sound("sum", sums::snapshots)))) {}

// Large states have a snapshot after as many more revisions. So snapshots add
// little to the file, whatever the state.
void sqlite_snapshots::note(std::int64_t scope_id,
                            std::int64_t first,
                            std::int64_t last) {
  const auto stride = largest_stride(first, last);
  if (stride == 0)
    return;
  if (const auto object
      = read_state(scope_id, std::min(stride * bytes_per_revision, bytes_max)))
    add_.run(scope_id, last, std::string_view(*object));
}

// The keys of the scope as a JSON object; nothing if it has more than `most`
// bytes. A damaged row gives nothing either: a snapshot would hide the damage,
// and an error would stop all commits.
std::optional<std::string> sqlite_snapshots::read_state(std::int64_t scope_id,
                                                        std::int64_t most) {
  std::string object;
  std::int64_t count = 0;
  for (auto rows = keys_.rows(scope_id); rows.next(); ++count) {
    if (rows.integer(2) != 1)
      return std::nullopt;
    append_key(object, rows.text(0), rows.text(1));
    if (std::ssize(object) > most)
      return std::nullopt;
  }
  auto expected = count_keys_.rows(scope_id);
  if (!expected.next() || expected.integer(1) != 1
      || expected.integer(0) != count)
    return std::nullopt;
  object += object.empty() ? "{}" : "}";
  return object;
}

std::optional<sqlite_snapshot> sqlite_snapshots::find(std::int64_t scope_id,
                                                      std::int64_t revision) {
  auto rows = find_.rows(scope_id, revision);
  if (!rows.next())
    return std::nullopt;
  rows.expect_sound(3, "snapshots");
  sqlite_snapshot found{rows.integer(0), rows.integer(1), {}};
  const auto kept = decode_value(rows.text(2)).value();
  if (!kept->is_object())
    throw error(errc::corrupt, "a snapshot is no object");
  // Names may look like those with a prefix of another scope.
  for (const auto& [name, data] : kept->get_ref<const json::object_t&>())
    found.keys.set(name, data);
  return found;
}

} // namespace troupe
