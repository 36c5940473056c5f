#include "troupe/stores/sqlite/entries.hpp"

#include "troupe/stores/shared/stored_event.hpp"
#include "troupe/stores/sqlite/sums.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace troupe {

namespace {

// A run of this length fills much of a page of its own.
constexpr std::size_t long_run = 64;

// Entries to move per committed row. The factor ends a pass long before the
// next one is due.
constexpr std::int64_t moves_per_row = 4;

// Smaller slices would write the same pages again and again.
constexpr std::int64_t slice_entries_max = 1'024;

// Entries to move when the file is closed.
constexpr std::int64_t moves_at_end = 16'384;

error damaged_logs() {
  return {errc::corrupt, "an entry has no list of positions"};
}

} // namespace

std::vector<std::int64_t> decode_logs(std::string_view text) {
  const auto list = decode_value(text);
  if (!list || !list->data().is_array() || list->data().empty())
    throw damaged_logs();
  std::vector<std::int64_t> logs;
  std::int64_t last = 0;
  for (const auto& step : list->data()) {
    if (!step.is_number_integer())
      throw damaged_logs();
    logs.push_back(last += step.get<std::int64_t>());
  }
  return logs;
}

sqlite_entries::sqlite_entries(const sqlite_database& database,
                               std::int64_t settle_rows)
  : settle_rows_(settle_rows),
    slice_entries_(std::min(settle_rows, slice_entries_max)),
    add_(database.prepare("INSERT OR REPLACE INTO settled_entries"
                          " VALUES(?1,?2,?3,?4,row_sum(?1,?2,?3,?4))")),
    add_fresh_(database.prepare("INSERT OR REPLACE INTO fresh_entries"
                                " VALUES(?1,?2,?3,?4,row_sum(?1,?2,?3,?4))")),
    add_shared_(database.prepare("INSERT OR REPLACE INTO shared_entries"
                                 " VALUES(?1,?2,?3,?4,row_sum(?1,?2,?3,?4))")),
    find_settled_(database.prepare(
      fmt::format("SELECT value,{} FROM fold_places WHERE name='settled'",
                  is_sound("sum", sums::fold_places)))),
    raise_settled_(
      database.prepare("UPDATE fold_places SET value=?1,sum=row_sum(name,?1)"
                       " WHERE name='settled' AND value<?1")),
    find_slice_(database.prepare(
      "SELECT scope,number FROM fresh_entries WHERE (scope,number)>(?1,?2)"
      " ORDER BY scope,number LIMIT ?3")),
    copy_slice_(
      database.prepare("INSERT OR REPLACE INTO settled_entries SELECT "
                       "scope,number,log,id_hash,sum"
                       " FROM fresh_entries WHERE (scope,number)>(?1,?2)"
                       " AND (scope,number)<=(?3,?4) ORDER BY scope,number")),
    erase_slice_(
      database.prepare("DELETE FROM fresh_entries WHERE (scope,number)>(?1,?2)"
                       " AND (scope,number)<=(?3,?4)")) {}

void sqlite_entries::add(std::int64_t scope_id,
                         std::span<const pending_change> rows) {
  auto& target = rows.size() < long_run ? add_fresh_ : add_;
  for (const auto& change : rows)
    target.run(scope_id, change.revision, change.row, change.id_hash);
}

void sqlite_entries::add_shared(std::int64_t scope_id,
                                std::span<const pending_change> run) {
  logs_ = '[';
  std::int64_t last = 0;
  for (const auto& change : run) {
    fmt::format_to(std::back_inserter(logs_),
                   "{}{}",
                   last == 0 ? "" : ",",
                   change.row - last);
    last = change.row;
  }
  logs_ += ']';
  add_shared_.run(scope_id, last, run.back().revision, std::string_view(logs_));
}

void sqlite_entries::settle(std::int64_t rows, std::int64_t folded) {
  if (until_ == 0) {
    if (settled_ && folded - *settled_ < settle_rows_)
      return;
    start_pass(folded);
    if (until_ == 0)
      return;
  }
  credit_ += rows * moves_per_row;
  if (credit_ < slice_entries_)
    return;
  while (credit_ > 0 && until_ != 0)
    move_slice();
}

// Starts a pass, unless another process has finished one since.
void sqlite_entries::start_pass(std::int64_t folded) {
  auto found = find_settled_.rows();
  if (!found.next())
    throw error(errc::corrupt,
                "the table fold_places has lost its row 'settled'");
  found.expect_sound(1, "fold_places");
  settled_ = found.integer(0);
  if (folded - *settled_ < settle_rows_)
    return;
  until_ = folded;
  behind_scope_ = 0;
  behind_number_ = 0;
  credit_ = 0;
}

void sqlite_entries::settle_at_end(std::int64_t folded) {
  if (until_ == 0)
    start_pass(folded);
  credit_ = moves_at_end;
  while (credit_ > 0 && until_ != 0)
    move_slice();
}

void sqlite_entries::move_slice() {
  auto scope = behind_scope_;
  auto number = behind_number_;
  std::int64_t count = 0;
  for (auto slice = find_slice_.rows(scope, number, slice_entries_);
       slice.next();
       ++count) {
    scope = slice.integer(0);
    number = slice.integer(1);
  }
  // An empty slice is the end of the table: all entries of the pass are moved.
  if (count == 0) {
    raise_settled_.run(until_);
    settled_ = until_;
    until_ = 0;
    return;
  }
  // Copy and delete happen in one transaction, so each entry is in exactly one
  // table after it.
  copy_slice_.run(behind_scope_, behind_number_, scope, number);
  erase_slice_.run(behind_scope_, behind_number_, scope, number);
  behind_scope_ = scope;
  behind_number_ = number;
  credit_ -= count;
}

} // namespace troupe
