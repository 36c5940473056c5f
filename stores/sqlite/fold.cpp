#include "troupe/stores/sqlite/fold.hpp"

#include "troupe/stores/shared/stored_event.hpp"
#include "troupe/stores/sqlite/sums.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace troupe {

namespace {

// Number of rows of one scope that are folded at a time.
constexpr std::size_t run_rows_max = 512;

// Visits per committed row. A row is visited once per scope that it touches, at
// most three times, so a batch is finished before as many new rows have come.
constexpr std::int64_t visits_per_row = 4;

// Smaller slices would write the same pages again and again.
constexpr std::int64_t slice_visits_min = 256;

// The small table of entries is then large enough to be worth a move, and still
// small enough that a batch writes few of its pages.
constexpr std::int64_t batches_per_settling = 16;

} // namespace

sqlite_fold::sqlite_fold(const sqlite_database& database,
                         log_tail& tail,
                         std::int64_t batch_rows)
  : tail_(tail),
    batch_rows_(batch_rows),
    entries_(database, batches_per_settling * batch_rows),
    snapshots_(database),
    raise_revision_(
      database.prepare("UPDATE scopes SET revision=?2,updated=max(updated,?3),"
                       "keys=keys+?4,sum=row_sum(app,user,session,?2,"
                       "max(updated,?3),keys+?4) WHERE id=?1")),
    find_revision_(
      database.prepare(fmt::format("SELECT revision,{} FROM scopes WHERE id=?1",
                                   is_sound("sum", sums::scopes)))),
    change_(database.prepare("UPDATE state SET value=?3,sum=row_sum(?1,?2,?3)"
                             " WHERE scope=?1 AND key=?2")),
    add_(
      database.prepare("INSERT INTO state VALUES(?1,?2,?3,row_sum(?1,?2,?3))")),
    erase_(database.prepare("DELETE FROM state WHERE scope=?1 AND key=?2")),
    raise_folded_(
      database.prepare("UPDATE fold_places SET value=?1,sum=row_sum(name,?1)"
                       " WHERE name='folded' AND value<?1")) {}

std::int64_t sqlite_fold::work(std::int64_t rows, std::int64_t folded) {
  entries_.settle(rows, folded);
  if (until_ <= folded)
    due_.clear(); // Another process has folded it.
  if (due_.empty()) {
    if (tail_.last() - folded < batch_rows_)
      return folded;
    start_batch();
  }
  credit_ += rows * visits_per_row;
  if (credit_ < slice_visits_min)
    return folded;
  while (credit_ > 0 && next_due_ < due_.size())
    fold_next(folded);
  return next_due_ < due_.size() ? folded : finish_batch();
}

std::int64_t sqlite_fold::work_all(std::int64_t folded) {
  due_.clear();
  if (tail_.last() <= folded)
    return folded;
  start_batch();
  while (next_due_ < due_.size())
    fold_next(folded);
  return finish_batch();
}

void sqlite_fold::start_batch() {
  until_ = tail_.last();
  due_ = tail_.scopes(until_);
  next_due_ = 0;
  behind_ = 0;
  credit_ = 0;
}

void sqlite_fold::fold_next(std::int64_t folded) {
  const auto [id, where] = due_[next_due_];
  run_.clear();
  // Rows up to `folded` may have been folded by another process, and even
  // deleted since.
  tail_.collect(id,
                std::numeric_limits<std::int64_t>::min(),
                std::max(behind_, folded),
                until_,
                run_rows_max,
                run_);
  credit_ -= std::ssize(run_) + 1;
  if (run_.size() < run_rows_max) {
    ++next_due_;
    behind_ = 0;
  } else {
    behind_ = run_.back().row;
  }
  // A removed scope still needs its entries: the purge finds its rows by them.
  const bool is_there = skip_written(id);
  if (run_.empty())
    return;
  if (is_there) {
    auto newest = run_.front().microseconds;
    for (const auto& change : run_)
      newest = std::max(newest, change.microseconds);
    const auto grown = write_state(id, where);
    // State and revision change in the same transaction. A revision that lags
    // would make the next process fold the rows twice.
    raise_revision_.run(id, run_.back().revision, newest, grown);
    if (where != scope::session)
      entries_.add_shared(id, run_);
    snapshots_.note(id, run_.front().revision, run_.back().revision);
  }
  write_entries(id, where);
}

// Drops the changes up to the scope's stored revision from the run. Returns
// false if the scope does not exist.
bool sqlite_fold::skip_written(std::int64_t scope_id) {
  auto rows = find_revision_.rows(scope_id);
  if (!rows.next())
    return false;
  rows.expect_sound(1, "scopes");
  const auto written = rows.integer(0);
  std::erase_if(run_, [written](const pending_change& change) {
    return change.revision <= written;
  });
  return true;
}

// Returns the number of keys that the scope has gained.
std::int64_t sqlite_fold::write_state(std::int64_t scope_id, scope where) {
  std::int64_t grown = 0;
  operations_.clear();
  for (const auto& change : run_)
    if (change.event)
      for (const auto& done : change.event->actions.state_delta.share(where))
        operations_.push_back(&done);
  // The sort is stable, so the last of equal names is the newest.
  std::ranges::stable_sort(operations_, {}, &operation::name);
  for (std::size_t index = 0; index < operations_.size(); ++index) {
    const auto& done = *operations_[index];
    if (index + 1 < operations_.size()
        && operations_[index + 1]->name == done.name)
      continue;
    const std::string_view name = done.name;
    if (done.operand.is_null()) {
      grown -= erase_.run(scope_id, name);
      continue;
    }
    text_.clear();
    append_text(text_, done.operand).value();
    const std::string_view text = text_;
    if (change_.run(scope_id, name, text) == 0)
      grown += add_.run(scope_id, name, text);
  }
  return grown;
}

// Entries of a user are only for rows that no session leads to.
void sqlite_fold::write_entries(std::int64_t scope_id, scope where) {
  if (where == scope::app)
    return;
  if (where == scope::user)
    std::erase_if(run_, &pending_change::has_session);
  entries_.add(scope_id, run_);
}

// `folded` is raised only after every scope of the batch was visited. A row up
// to `folded` is never read from the log again to fold it.
std::int64_t sqlite_fold::finish_batch() {
  raise_folded_.run(until_);
  due_.clear();
  return until_;
}

} // namespace troupe
