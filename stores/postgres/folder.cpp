#include "troupe/stores/postgres/folder.hpp"

#include "troupe/core/support/low_memory.hpp"
#include "troupe/core/value.hpp"
#include "troupe/stores/postgres/event.hpp"
#include "troupe/stores/shared/stored_event.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace troupe {

// Invariant: `state` and `scopes` hold the replay of the log up to row
// `folded.id`.
//
// One transaction reads the rows after `folded.id`, writes their outcome and
// moves `folded.id`, under the fold lock. Without the lock two processes would
// apply the same rows, and a removal could be undone by state that was read
// before it.

namespace {

namespace transaction = postgres_transaction;

using namespace std::chrono_literals;

constexpr std::string_view folding = "fold the store's log into its state";

// Number of rows at which folding starts. It also starts after a pause without
// commits.
constexpr std::size_t rows_to_start = 32'768;
constexpr auto pause_to_start = 1000ms;
// Number of rows at which commits wait.
constexpr std::size_t rows_max = 131'072;
// Number of rows per transaction.
constexpr std::int64_t rows_at_once = 65'536;

// No sync: if the server loses a fold, the rows are still in the log and are
// folded again.
constexpr postgres_statement need_no_sync
  = {"need_no_sync", "SELECT set_config('synchronous_commit', 'off', true)"};
constexpr postgres_statement find_bounds = {"find_bounds", R"(
SELECT f.id, least(f.id + $1::bigint, l.id), l.id,
       (SELECT number FROM version)
  FROM folded AS f,
       (SELECT coalesce(max(id), 0) AS id FROM change_log) AS l)"};

constexpr postgres_statement read_log = {"read_log", R"(
SELECT session, session_revision, usr, user_revision, app, app_revision,
       time, delta
  FROM change_log WHERE id > $1::bigint AND id <= $2::bigint ORDER BY id)"};

constexpr postgres_statement set_keys = {"set_keys", R"(
INSERT INTO state (scope, key, value)
  SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[])
  ON CONFLICT (scope, key) DO UPDATE SET value = excluded.value)"};

constexpr postgres_statement erase_keys = {"erase_keys", R"(
DELETE FROM state AS s
  USING unnest($1::bigint[], $2::text[]) AS n(scope, key)
  WHERE s.scope = n.scope AND s.key = n.key)"};

// A session's creation sets the first time, whatever the column holds. Users
// and apps keep their time, so that PostgreSQL can update their rows in place:
// no index contains the revision.
constexpr postgres_statement move_scopes = {"move_scopes", R"(
UPDATE scopes AS s SET
  revision = n.revision,
  updated = CASE WHEN s.session = '' THEN s.updated
                 WHEN s.revision < 0 THEN n.updated
                 ELSE greatest(s.updated, n.updated) END
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[])
  AS n(id, revision, updated)
WHERE s.id = n.id)"};

constexpr postgres_statement move_on
  = {"move_on", "UPDATE folded SET id = $1::bigint"};

// Deletes tombstones, which hold names, after thirty days; by then every
// process has read them. The newest row stays, because it determines the next
// number.
constexpr postgres_statement forget_removals = {"forget_removals", R"(
DELETE FROM change_log WHERE kind >= 3 AND id <= $1::bigint
  AND id < (SELECT max(id) FROM change_log)
  AND time < (extract(epoch FROM clock_timestamp()) - 2592000) * 1000000)"};

// By then every other process has seen a newer mark.
constexpr postgres_statement forget_marks = {"forget_marks", R"(
DELETE FROM marks WHERE number < (SELECT max(number) FROM marks) - 1048576)"};

// -- the effect of a range of rows ----

struct folded_scope {
  std::int64_t revision = 0;
  std::int64_t updated = std::numeric_limits<std::int64_t>::min();
  /// Null if the key is erased.
  std::unordered_map<std::string, value> keys;
};

// Ordered by id, because writing rows in index order is faster.
using folded_scopes = std::map<std::int64_t, folded_scope>;

result<folded_scopes> fold_rows(const postgres_rows& rows) {
  folded_scopes folded;
  for (int i = 0; i < rows.size(); ++i) {
    std::array<folded_scope*, 3> touched{};
    for (const auto where : {scope::session, scope::user, scope::app}) {
      const auto column = 2 * static_cast<int>(where);
      if (rows.is_null(i, column))
        continue;
      auto& found = folded[rows.number(i, column)];
      found.revision = rows.number(i, column + 1);
      found.updated = std::max(found.updated, rows.number(i, 6));
      touched[static_cast<std::size_t>(where)] = &found;
    }
    if (rows.is_null(i, 7))
      continue;
    const auto changed = decode_delta(rows.text(i, 7));
    if (!changed)
      return changed.error();
    for (const auto& done : changed->operations())
      if (done.where != scope::temp)
        if (auto* const owner = touched[static_cast<std::size_t>(done.where)])
          owner->keys.insert_or_assign(done.name, done.operand);
  }
  return folded;
}

// Number of keys that one statement writes.
constexpr std::size_t keys_at_once = 8'192;

class state_update {
public:
  explicit state_update(postgres_connection& connection)
    : connection_(connection) {}

  result<void> add(std::int64_t id, const folded_scope& folded) {
    ids_.push_back(id);
    revisions_.push_back(folded.revision);
    times_.push_back(folded.updated);
    std::vector<const std::pair<const std::string, value>*> sorted;
    for (const auto& entry : folded.keys)
      sorted.push_back(&entry);
    std::ranges::sort(sorted, {}, [](const auto* entry) -> const std::string& {
      return entry->first;
    });
    for (const auto* const entry : sorted) {
      if (entry->second.is_null()) {
        erased_scopes_.push_back(id);
        erased_keys_.emplace_back(entry->first);
        continue;
      }
      scopes_.push_back(id);
      keys_.emplace_back(entry->first);
      if (auto written = append_text(texts_.emplace_back(), entry->second);
          !written)
        return written;
    }
    if (keys_.size() + erased_keys_.size() + ids_.size() >= keys_at_once)
      queue();
    return {};
  }

  void queue() {
    const std::vector<std::string_view> texts(texts_.begin(), texts_.end());
    if (!keys_.empty())
      connection_.queue(
        set_keys, postgres_parameters().add(scopes_).add(keys_).add(texts));
    if (!erased_keys_.empty())
      connection_.queue(
        erase_keys,
        postgres_parameters().add(erased_scopes_).add(erased_keys_));
    if (!ids_.empty())
      connection_.queue(
        move_scopes,
        postgres_parameters().add(ids_).add(revisions_).add(times_));
    for (auto* const numbers :
         {&ids_, &revisions_, &times_, &scopes_, &erased_scopes_})
      numbers->clear();
    keys_.clear();
    texts_.clear();
    erased_keys_.clear();
  }

private:
  postgres_connection& connection_;
  std::vector<std::int64_t> ids_;
  std::vector<std::int64_t> revisions_;
  std::vector<std::int64_t> times_;
  std::vector<std::int64_t> scopes_;
  std::vector<std::string_view> keys_;
  std::vector<std::string> texts_;
  std::vector<std::int64_t> erased_scopes_;
  std::vector<std::string_view> erased_keys_;
};

result<void> queue_fold(postgres_connection& connection,
                        const postgres_rows& rows) {
  const auto folded = fold_rows(rows);
  if (!folded)
    return unreadable(folding, folded.error());
  state_update update(connection);
  for (const auto& [id, made] : *folded)
    if (auto added = update.add(id, made); !added)
      return added;
  update.queue();
  return {};
}

// Folds the rows behind `first` up to `last`. The last statements stay in the
// pipeline.
result<void> fold_portion(postgres_connection& connection,
                          std::int64_t first,
                          std::int64_t last) {
  connection.queue(read_log, postgres_parameters().add(first).add(last));
  const auto answers = connection.run(folding, postgres_long_deadline);
  if (!answers)
    return answers.error();
  if (auto queued = queue_fold(connection, answers->back()); !queued)
    return queued;
  connection.queue(move_on, postgres_parameters().add(last));
  return {};
}

postgres_parameters long_limit() {
  return postgres_parameters().add(
    std::int64_t{std::chrono::milliseconds(postgres_long_deadline).count()});
}

error newer_layout() {
  return {errc::store_failed,
          fmt::format("{}: a newer troupe has changed its tables", folding)};
}

// Folds one portion. Returns true if the log has more rows up to `goal`.
result<bool> fold_some(postgres_connection& connection,
                       std::int64_t lock,
                       std::optional<std::int64_t>& goal) {
  connection.queue(transaction::begin);
  connection.queue(transaction::allow_long, long_limit());
  connection.queue(need_no_sync);
  connection.queue(transaction::take_lock, postgres_parameters().add(lock));
  connection.queue(find_bounds, postgres_parameters().add(rows_at_once));
  auto answers = connection.run(folding, postgres_long_deadline);
  if (!answers)
    return answers.error();
  const auto& bounds = answers->back();
  const auto first = bounds.number(0, 0);
  const auto last = bounds.number(0, 1);
  if (!goal)
    goal = bounds.number(0, 2);
  const bool is_readable = bounds.number(0, 3) == postgres_layout;
  if (first >= last || !is_readable) {
    // The goal may be unreachable: the server may have lost rows since it was
    // set.
    goal = last;
    connection.queue(transaction::roll_back);
  } else {
    if (auto folded = fold_portion(connection, first, last); !folded)
      return folded.error();
    connection.queue(forget_removals, postgres_parameters().add(last));
    connection.queue(forget_marks);
    connection.queue(transaction::commit);
  }
  answers = connection.run(folding, postgres_long_deadline);
  if (!answers)
    return answers.error();
  if (!is_readable)
    return newer_layout();
  return last < *goal;
}

} // namespace

result<void> fold_in_transaction(postgres_connection& connection) {
  connection.queue(transaction::allow_long, long_limit());
  for (;;) {
    connection.queue(find_bounds, postgres_parameters().add(rows_at_once));
    const auto answers = connection.run(folding, postgres_long_deadline);
    if (!answers)
      return answers.error();
    const auto& bounds = answers->back();
    if (bounds.number(0, 3) != postgres_layout)
      return newer_layout();
    const auto first = bounds.number(0, 0);
    const auto last = bounds.number(0, 1);
    if (first >= last)
      return {};
    if (auto folded = fold_portion(connection, first, last); !folded)
      return folded;
  }
}

postgres_folder::postgres_folder(postgres_pool& pool)
  : pool_(pool),
    thread_([this] { with_memory_or_end([this] { work(); }); }) {}

postgres_folder::~postgres_folder() {
  stop();
}

void postgres_folder::stop() {
  {
    const std::lock_guard guard(mutex_);
    is_stopping_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable())
    thread_.join();
}

void postgres_folder::added(std::size_t rows) {
  std::unique_lock guard(mutex_);
  waiting_ += rows;
  if (waiting_ >= rows_to_start || waiting_ == rows)
    changed_.notify_all();
  changed_.wait(guard, [this] {
    return waiting_ < rows_max || is_failing_ || is_stopping_;
  });
}

result<void> postgres_folder::fold() {
  std::optional<std::int64_t> goal;
  return pool_.with([&](postgres_connection& connection) -> result<void> {
    for (;;) {
      auto more = fold_some(connection, pool_.setup().fold_lock, goal);
      if (!more)
        return more.error();
      if (!*more)
        return {};
    }
  });
}

void postgres_folder::work() {
  std::unique_lock guard(mutex_);
  // The previous process may have left rows.
  waiting_ = std::max<std::size_t>(waiting_, 1);
  while (!is_stopping_) {
    changed_.wait(guard, [this] { return waiting_ > 0 || is_stopping_; });
    changed_.wait_for(guard, pause_to_start, [this] {
      return waiting_ >= rows_to_start || is_stopping_;
    });
    if (is_stopping_)
      break;
    const auto folding_now = waiting_;
    guard.unlock();
    const bool is_folded = fold().has_value();
    guard.lock();
    // Commits stop waiting while folding fails. Loads still work; they replay
    // more rows.
    is_failing_ = !is_folded;
    if (is_folded)
      waiting_ -= std::min(waiting_, folding_now);
    changed_.notify_all();
  }
}

} // namespace troupe
