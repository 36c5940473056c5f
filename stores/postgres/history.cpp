#include "troupe/stores/postgres/history.hpp"

#include "troupe/stores/postgres/schema.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

namespace troupe {

namespace {

// Number of own commits that are remembered, and so can be counted as lost; 16
// bytes each.
constexpr std::size_t own_max = 65'536;

constexpr postgres_statement look_at_marks = {"look_at_marks", R"(
SELECT m.number, m.stamp,
       (SELECT count(*) FROM unnest($1::bigint[], $2::bigint[])
          AS k(number, stamp)
          JOIN marks AS n ON n.number = k.number AND n.stamp = k.stamp),
       (SELECT number FROM version)
  FROM marks AS m ORDER BY m.number DESC LIMIT 1)"};

constexpr postgres_statement add_mark = {"add_mark", R"(
INSERT INTO marks (number, stamp, before)
  SELECT number + 1, $1::bigint, stamp
    FROM marks ORDER BY number DESC LIMIT 1
  RETURNING number, stamp, before)"};

constexpr postgres_statement find_marks = {"find_marks", R"(
SELECT m.number, m.stamp
  FROM unnest($1::bigint[], $2::bigint[]) AS k(number, stamp)
  JOIN marks AS m ON m.number = k.number AND m.stamp = k.stamp)"};

constexpr postgres_statement find_ends
  = {"find_ends",
     "SELECT m.number, m.stamp, (SELECT min(number) FROM marks)"
     " FROM marks AS m ORDER BY m.number DESC LIMIT 1"};

template <class Marks>
postgres_parameters arrays_of(const Marks& marks) {
  std::vector<std::int64_t> numbers;
  std::vector<std::int64_t> stamps;
  for (const auto& each : marks) {
    numbers.push_back(each.number);
    stamps.push_back(each.stamp);
  }
  return postgres_parameters().add(numbers).add(stamps);
}

std::mt19937_64 seeded() {
  std::random_device source;
  std::seed_seq seed{source(), source(), source(), source()};
  return std::mt19937_64(seed);
}

error no_marks(std::string_view attempted) {
  return {errc::corrupt,
          fmt::format("{}: the table of commit marks is empty", attempted)};
}

// Returns true if the database has all marks that were asked for.
result<bool> compare(const postgres_history::marks& asked,
                     const postgres_rows& answer,
                     std::string_view attempted) {
  if (answer.size() != 1)
    return no_marks(attempted);
  if (const auto layout = answer.number(0, 3); layout != postgres_layout)
    return error(errc::store_failed,
                 fmt::format("{}: another troupe has brought the store's "
                             "tables to version {}, this one knows version {}: "
                             "restart with the newer program",
                             attempted,
                             layout,
                             postgres_layout));
  return answer.number(0, 2) == static_cast<std::int64_t>(asked.size());
}

std::string describe_loss(std::uint64_t commits, bool is_certain) {
  constexpr std::string_view next
    = "all state is loaded again, and unanswered calls are computed again";
  if (commits > 0)
    return fmt::format(
      "the PostgreSQL database has lost {} commit{} of this process that the "
      "server had confirmed (a crash under durability os or none, a failover "
      "to a replica that lagged, or a restored backup); {}",
      commits,
      commits == 1 ? "" : "s",
      next);
  if (is_certain)
    return fmt::format(
      "the PostgreSQL database does not have the last commits that this "
      "process had seen, none of them its own (a crash under durability os or "
      "none, a failover to a replica that lagged, or a restored backup); {}",
      next);
  return fmt::format(
    "this process was idle for so many commits that the PostgreSQL database no "
    "longer keeps the mark of the last one it knew, so lost commits cannot be "
    "ruled out; {}",
    next);
}

} // namespace

postgres_history::postgres_history() : random_(seeded()) {}

// -- any thread ----

postgres_history::marks
postgres_history::queue_mark_check(postgres_connection& connection) const {
  marks asked;
  {
    // The marks are copied before the statement is sent. A mark that becomes
    // known later is not part of this comparison.
    const std::lock_guard guard(mutex_);
    asked = known_;
  }
  connection.queue(look_at_marks, arrays_of(asked));
  return asked;
}

result<bool> postgres_history::take_mark_check(const marks& asked,
                                               const postgres_rows& answer,
                                               std::string_view attempted) {
  auto is_same = compare(asked, answer, attempted);
  if (!is_same)
    return is_same.error();
  const std::lock_guard guard(mutex_);
  if (*is_same)
    note_marks(asked, {answer.number(0, 0), answer.number(0, 1)});
  else
    // The load does not fail. The committing thread sees the suspicion, changes
    // over to the other history and makes every owner load again.
    is_suspected_ = true;
  return is_same;
}

result<postgres_rows>
postgres_history::read(postgres_connection& connection,
                       const postgres_statement& statement,
                       const postgres_parameters& parameters,
                       std::string_view attempted) {
  connection.queue(statement, parameters);
  const auto asked = queue_mark_check(connection);
  auto answers = connection.run(attempted, postgres_deadline);
  if (!answers)
    return answers.error();
  if (auto checked = take_mark_check(asked, answers->back(), attempted);
      !checked)
    return checked.error();
  return std::move(answers->front());
}

// Records that a database with `newest` has all of `asked`. Requires `mutex_`.
//
// `newest` replaces only the marks that were asked for. Other known marks are
// of concurrent loads, and this state of the database was not compared with
// them.
void postgres_history::note_marks(const marks& asked,
                                  const commit_mark& newest) {
  std::erase_if(known_, [&](const commit_mark& each) {
    return each == newest || std::ranges::find(asked, each) != asked.end();
  });
  known_.push_back(newest);
}

bool postgres_history::is_suspected() const {
  const std::lock_guard guard(mutex_);
  return is_suspected_;
}

// -- the committing thread ----

result<postgres_history::new_mark>
postgres_history::add(postgres_connection& connection,
                      std::string_view attempted) {
  new_mark added;
  {
    const std::lock_guard guard(mutex_);
    added.asked = known_;
  }
  connection.queue(
    add_mark,
    postgres_parameters().add(static_cast<std::int64_t>(random_() >> 1U)));
  auto answers = connection.run(attempted, postgres_deadline);
  if (!answers)
    return answers.error();
  const auto& row = answers->back();
  if (row.size() != 1)
    return no_marks(attempted);
  added.mark = {row.number(0, 0), row.number(0, 1)};
  added.earlier.assign(std::make_move_iterator(answers->begin()),
                       std::make_move_iterator(answers->end() - 1));
  // The insert returns the stamp of the mark before. If that is the only known
  // mark, no other process has committed since. This is the usual case and
  // needs no second statement.
  const commit_mark before{row.number(0, 0) - 1, row.number(0, 2)};
  added.is_same = added.asked == marks{before};
  if (added.is_same)
    return added;
  connection.queue(look_at_marks, arrays_of(added.asked));
  answers = connection.run(attempted, postgres_deadline);
  if (!answers)
    return answers.error();
  auto is_same = compare(added.asked, answers->front(), attempted);
  if (!is_same)
    return is_same.error();
  added.is_same = *is_same;
  return added;
}

void postgres_history::confirm(const new_mark& made) {
  own_.push_back(made.mark);
  if (own_.size() > own_max)
    own_.pop_front();
  const std::lock_guard guard(mutex_);
  note_marks(made.asked, made.mark);
}

result<lost_history>
postgres_history::change_over(postgres_connection& connection,
                              std::string_view attempted) {
  connection.queue(find_marks, arrays_of(own_));
  connection.queue(find_ends);
  auto answers = connection.run(attempted, postgres_deadline);
  if (!answers)
    return answers.error();
  const auto& found = answers->front();
  const auto& ends = answers->back();
  if (ends.size() != 1)
    return no_marks(attempted);
  const auto oldest = ends.number(0, 2);
  std::deque<commit_mark> kept;
  for (int i = 0; i < found.size(); ++i)
    kept.push_back({found.number(i, 0), found.number(i, 1)});
  std::ranges::sort(kept, {}, &commit_mark::number);
  // Own marks below the oldest stored one may have been pruned, so they do not
  // count.
  const auto countable = std::ranges::count_if(
    own_, [&](const commit_mark& each) { return each.number >= oldest; });
  lost_history lost;
  lost.commits = static_cast<std::uint64_t>(
    std::max<std::ptrdiff_t>(0, countable - std::ssize(kept)));
  own_ = std::move(kept);
  const std::lock_guard guard(mutex_);
  const bool is_certain
    = is_suspected_ || std::ranges::any_of(known_, [&](const auto& each) {
        return each.number >= oldest;
      });
  lost.warning = describe_loss(lost.commits, is_certain);
  known_ = {{ends.number(0, 0), ends.number(0, 1)}};
  is_suspected_ = false;
  return lost;
}

} // namespace troupe
