#include "troupe/stores/postgres/check.hpp"

#include "troupe/stores/postgres/event.hpp"
#include "troupe/stores/postgres/schema.hpp"
#include "troupe/stores/shared/stored_event.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace troupe {

namespace {

constexpr std::string_view checking = "check the store";

// Number of scopes whose state is in memory at once. The log is read once per
// such portion.
constexpr std::int64_t scopes_at_once = 65'536;
constexpr std::int64_t rows_checked_at_once = 8'192;

constexpr postgres_statement count_all
  = {"count_all",
     "SELECT (SELECT count(*) FROM scopes),"
     " (SELECT coalesce(max(id), 0) FROM change_log)"};

constexpr postgres_statement set_timeout
  = {"set_timeout",
     "SELECT set_config('statement_timeout', $1::bigint::text, false)"};

// Scopes with their state and first state, all at one moment.
constexpr postgres_statement read_scopes = {"read_scopes", R"(
WITH page AS MATERIALIZED (
  SELECT * FROM scopes WHERE id > $1::bigint ORDER BY id LIMIT $2::bigint)
SELECT 0 AS part, id, revision, app, usr, session,
       coalesce(past_revision, 0) AS created FROM page
UNION ALL
SELECT 1, s.scope, 0, s.key, s.value, NULL, 0
  FROM page JOIN state AS s ON s.scope = page.id
UNION ALL
SELECT 2, f.scope, f.revision, NULL, f.delta, NULL, 0
  FROM page JOIN first_states AS f ON f.scope = page.id)"};

constexpr postgres_statement read_rows = {"read_rows", R"(
SELECT id, session, session_revision, usr, user_revision, app, app_revision,
       event_hash, time, event, delta, body
  FROM change_log WHERE id > $1::bigint AND kind < 3 ORDER BY id LIMIT $2::bigint)"};

constexpr postgres_statement find_existing
  = {"find_existing",
     "SELECT s.id, coalesce(f.revision, 0)"
     " FROM scopes AS s LEFT JOIN first_states AS f ON f.scope = s.id"
     " WHERE s.id = ANY ($1::bigint[])"};

// Forks whose past is not there, and pasts that no fork has. The replay of a
// trimmed past ignores its first rows, so those that a fork needs are counted.
constexpr postgres_statement find_broken_pasts = {"find_broken_pasts", R"(
SELECT f.id, f.app, f.usr, f.session,
       'the past that it shares, scope ' || f.past || ', is missing'
  FROM scopes AS f WHERE f.past IS NOT NULL
    AND NOT EXISTS (SELECT FROM scopes AS p WHERE p.id = f.past)
UNION ALL
SELECT f.id, f.app, f.usr, f.session,
       'its past, scope ' || f.past || ', ends before revision '
         || f.past_revision
  FROM scopes AS f JOIN scopes AS p ON p.id = f.past
  WHERE f.past_revision > greatest(p.past_revision,
    (SELECT l.session_revision FROM change_log AS l WHERE l.session = p.id
       ORDER BY l.session_revision DESC LIMIT 1),
    (SELECT t.revision FROM first_states AS t WHERE t.scope = p.id), -1)
UNION ALL
SELECT n.id, n.app, n.usr, n.session,
       'its past, scope ' || n.past || ', lacks revisions between '
         || n.needed || ' to ' || n.past_revision
  FROM (SELECT f.*, greatest(p.past_revision, 0, 1 +
          (SELECT k.revision FROM first_states AS k WHERE k.scope = f.id))
          AS needed
        FROM first_states AS t JOIN scopes AS p ON p.id = t.scope
          JOIN scopes AS f ON f.past = p.id) AS n
  WHERE n.past_revision > 0 AND n.past_revision - n.needed + 1 >
    (SELECT count(*) FROM change_log AS l WHERE l.session = n.past
       AND l.session_revision BETWEEN n.needed AND n.past_revision)
UNION ALL
SELECT n.id, n.app, n.usr, n.session, 'it is kept for forks, but has none'
  FROM scopes AS n WHERE n.app = ''
    AND NOT EXISTS (SELECT FROM scopes AS f WHERE f.past = n.id))"};

constexpr postgres_statement find_strays = {"find_strays", R"(
SELECT 'state', count(*) FROM state AS t
  WHERE NOT EXISTS (SELECT FROM scopes AS s WHERE s.id = t.scope)
UNION ALL
SELECT 'first states', count(*) FROM first_states AS t
  WHERE NOT EXISTS (SELECT FROM scopes AS s WHERE s.id = t.scope)
UNION ALL
SELECT 'open runs', count(*) FROM open_runs AS t
  WHERE NOT EXISTS (SELECT FROM scopes AS s
    WHERE s.id = t.scope AND s.app <> '' AND s.session <> '')
UNION ALL
SELECT 'log of sessions', count(*) FROM change_log AS t WHERE t.session IS NOT NULL
  AND NOT EXISTS (SELECT FROM scopes AS s WHERE s.id = t.session)
UNION ALL
SELECT 'log of users', count(*) FROM change_log AS t WHERE t.usr IS NOT NULL
  AND NOT EXISTS (SELECT FROM scopes AS s WHERE s.id = t.usr)
UNION ALL
SELECT 'log of apps', count(*) FROM change_log AS t WHERE t.app IS NOT NULL
  AND NOT EXISTS (SELECT FROM scopes AS s WHERE s.id = t.app))"};

// Each mark carries the stamp of the mark before.
constexpr postgres_statement find_broken_marks = {"find_broken_marks", R"(
SELECT (SELECT max(number) - min(number) FROM marks) - count(*)
  FROM marks AS n JOIN marks AS m
    ON m.number = n.number - 1 AND m.stamp = n.before)"};

struct checked_scope {
  owner_name owner;
  /// Revision of the stored state; -1 for a session that is not folded yet.
  std::int64_t revision = 0;
  stored_scope stored;
  stored_scope replayed;
  /// The last revision in the log.
  std::int64_t last = 0;
  /// Of a trimmed session: the oldest revision that it keeps; else 0.
  std::int64_t kept_from = 0;
  /// True if the replay begins with the state at `kept_from`.
  bool is_trimmed = false;
};

struct check_finding {
  std::int64_t scope; // 0 if it belongs to none.
  /// `kept_from` of the scope, if the finding depends on its log.
  std::optional<std::int64_t> kept_from;
  std::string line;
};

class postgres_check {
public:
  postgres_check(postgres_connection& connection,
                 const std::function<void(double done)>& on_progress)
    : connection_(connection),
      on_progress_(on_progress) {}

  result<std::vector<std::string>> run() {
    if (auto set = limit_statements(postgres_long_deadline); !set)
      return set.error();
    auto counts = ask(count_all);
    if (!counts)
      return counts.error();
    passes_ = std::max<std::int64_t>(
      1, (counts->number(0, 0) + scopes_at_once - 1) / scopes_at_once);
    log_end_ = std::max<std::int64_t>(1, counts->number(0, 1));
    for (std::int64_t last_scope = 0;; ++pass_) {
      auto next = read_page(last_scope);
      if (!next)
        return next.error();
      if (scopes_.empty())
        break;
      last_scope = *next;
      if (auto replayed = replay(); !replayed)
        return replayed.error();
      compare();
    }
    if (auto found = find_pasts(); !found)
      return found.error();
    if (auto dropped = drop_removed(); !dropped)
      return dropped.error();
    if (auto found = find_stray_rows(); !found)
      return found.error();
    if (auto found = find_broken_chain(); !found)
      return found.error();
    if (auto set = limit_statements(postgres_deadline); !set)
      return set.error();
    if (on_progress_)
      on_progress_(1);
    std::vector<std::string> lines;
    for (auto& finding : findings_)
      lines.push_back(std::move(finding.line));
    return lines;
  }

private:
  result<postgres_rows> ask(const postgres_statement& statement,
                            const postgres_parameters& parameters = {}) {
    connection_.queue(statement, parameters);
    auto answers = connection_.run(checking, postgres_long_deadline);
    if (!answers)
      return answers.error();
    return std::move(answers->front());
  }

  result<void> limit_statements(std::chrono::milliseconds limit) {
    auto set = ask(set_timeout,
                   postgres_parameters().add(std::int64_t{limit.count()}));
    if (!set)
      return set.error();
    return {};
  }

  // Reads a page and returns its last id.
  result<std::int64_t> read_page(std::int64_t behind) {
    scopes_.clear();
    auto rows
      = ask(read_scopes, postgres_parameters().add(behind).add(scopes_at_once));
    if (!rows)
      return rows.error();
    auto last = behind;
    for (int i = 0; i < rows->size(); ++i) {
      if (rows->number(i, 0) != 0)
        continue;
      const auto id = rows->number(i, 1);
      last = std::max(last, id);
      auto& made = scopes_[id];
      made.owner = {std::string(rows->text(i, 3)),
                    std::string(rows->text(i, 4)),
                    std::string(rows->text(i, 5))};
      made.revision = rows->number(i, 2);
      // A session without names has an id, too.
      made.last = made.owner.session.empty() ? 0 : rows->number(i, 6) - 1;
    }
    for (int i = 0; i < rows->size(); ++i) {
      if (rows->number(i, 0) != 1)
        continue;
      const auto id = rows->number(i, 1);
      auto data = decode_value(rows->text(i, 4));
      if (data)
        scopes_[id].stored.keys.set(rows->text(i, 3), *std::move(data));
      else
        report(id,
               fmt::format(
                 "key '{}': {}", rows->text(i, 3), data.error().message()));
    }
    for (int i = 0; i < rows->size(); ++i)
      if (rows->number(i, 0) == 2)
        start(rows->number(i, 1), rows->number(i, 2), rows->text(i, 4));
    return last;
  }

  // Begins the replay of a trimmed session with its first state, unless that is
  // a revision of its past.
  void start(std::int64_t id, std::int64_t first, std::string_view delta) {
    auto& trimmed = scopes_[id];
    trimmed.kept_from = first;
    if (first <= trimmed.last)
      return;
    trimmed.is_trimmed = true;
    trimmed.last = first;
    // The creation of a fork may not be folded yet.
    if (first > trimmed.revision)
      return;
    if (auto replayed = replay_delta(trimmed.replayed, delta, scope::session);
        !replayed)
      report(id,
             fmt::format("its state at revision {}: {}",
                         first,
                         replayed.error().message()));
  }

  result<void> replay() {
    for (std::int64_t last_row = 0;;) {
      auto rows
        = ask(read_rows,
              postgres_parameters().add(last_row).add(rows_checked_at_once));
      if (!rows)
        return rows.error();
      for (int i = 0; i < rows->size(); ++i)
        replay(*rows, i);
      if (rows->size() < rows_checked_at_once)
        return {};
      last_row = rows->number(rows->size() - 1, 0);
      if (on_progress_)
        on_progress_(std::min(
          0.99,
          (static_cast<double>(pass_)
           + static_cast<double>(last_row) / static_cast<double>(log_end_))
            / static_cast<double>(passes_)));
    }
  }

  void replay(const postgres_rows& rows, int row) {
    for (const auto where : {scope::session, scope::user, scope::app}) {
      const auto column = 1 + 2 * static_cast<int>(where);
      if (rows.is_null(row, column))
        continue;
      const auto found = scopes_.find(rows.number(row, column));
      if (found == scopes_.end())
        continue;
      auto& [id, checked] = *found;
      const auto revision = rows.number(row, column + 1);
      // Rows that a trim may have left or not.
      if (checked.is_trimmed && revision <= checked.kept_from)
        continue;
      if (revision != checked.last + 1)
        report(id,
               fmt::format("its log goes from revision {} to {}",
                           checked.last,
                           revision));
      checked.last = revision;
      if (where == scope::session && !rows.is_null(row, 7))
        if (auto said = read_postgres_event(rows, row, 8); !said)
          report(id,
                 fmt::format("event {}: {}", revision, said.error().message()));
      if (revision > checked.revision)
        continue;
      if (auto replayed
          = replay_delta(checked.replayed, rows.text(row, 10), where);
          !replayed)
        report(
          id,
          fmt::format("revision {}: {}", revision, replayed.error().message()));
    }
  }

  void compare() {
    for (const auto& [id, checked] : scopes_) {
      // Only the events of a removed session are kept for its forks.
      if (checked.owner.app.empty())
        continue;
      if (checked.last < checked.revision)
        report(
          id,
          fmt::format("its state is of revision {}, and its log ends at {}",
                      checked.revision,
                      checked.last));
      else if (!(checked.stored.keys == checked.replayed.keys))
        report(id,
               fmt::format(
                 "the state at revision {} differs from the replay of its log",
                 checked.revision));
    }
  }

  void report(std::int64_t id, std::string_view what) {
    const auto& found = scopes_[id];
    report(id, found.kept_from, found.owner, what);
  }

  void report(std::int64_t id,
              std::optional<std::int64_t> kept_from,
              const owner_name& owner,
              std::string_view what) {
    findings_.push_back(
      {id,
       kept_from,
       fmt::format("{}: {}",
                   owner.app.empty() ? fmt::format("scope {}", id)
                                     : to_string(owner),
                   what)});
  }

  void report_line(std::string line) {
    findings_.push_back({0, std::nullopt, std::move(line)});
  }

  result<void> find_pasts() {
    auto rows = ask(find_broken_pasts);
    if (!rows)
      return rows.error();
    for (int i = 0; i < rows->size(); ++i)
      report(rows->number(i, 0),
             std::nullopt,
             {std::string(rows->text(i, 1)),
              std::string(rows->text(i, 2)),
              std::string(rows->text(i, 3))},
             rows->text(i, 4));
    return {};
  }

  // Drops findings about scopes that were removed or trimmed during the check.
  result<void> drop_removed() {
    if (findings_.empty())
      return {};
    std::vector<std::int64_t> ids;
    ids.reserve(findings_.size());
    for (const auto& finding : findings_)
      ids.push_back(finding.scope);
    auto rows = ask(find_existing, postgres_parameters().add(ids));
    if (!rows)
      return rows.error();
    std::unordered_map<std::int64_t, std::int64_t> existing;
    for (int i = 0; i < rows->size(); ++i)
      existing.emplace(rows->number(i, 0), rows->number(i, 1));
    std::erase_if(findings_, [&](const check_finding& finding) {
      const auto found = existing.find(finding.scope);
      return found == existing.end()
             || found->second != finding.kept_from.value_or(found->second);
    });
    return {};
  }

  result<void> find_stray_rows() {
    auto rows = ask(find_strays);
    if (!rows)
      return rows.error();
    for (int i = 0; i < rows->size(); ++i)
      if (rows->number(i, 1) > 0)
        report_line(fmt::format("{} rows of the {} belong to no existing scope",
                                rows->number(i, 1),
                                rows->text(i, 0)));
    return {};
  }

  result<void> find_broken_chain() {
    auto rows = ask(find_broken_marks);
    if (!rows)
      return rows.error();
    if (rows->is_null(0, 0))
      report_line("the table of commit marks is empty");
    else if (rows->number(0, 0) != 0)
      report_line("the marks of the commits are not one chain");
    return {};
  }

  postgres_connection& connection_;
  const std::function<void(double done)>& on_progress_;
  std::unordered_map<std::int64_t, checked_scope> scopes_;
  std::vector<check_finding> findings_;
  std::int64_t pass_ = 0;
  std::int64_t passes_ = 1;
  std::int64_t log_end_ = 1;
};

} // namespace

result<std::vector<std::string>>
check_postgres(postgres_connection& connection,
               const std::function<void(double done)>& on_progress) {
  return postgres_check(connection, on_progress).run();
}

} // namespace troupe
