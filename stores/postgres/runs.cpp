#include "troupe/stores/postgres/runs.hpp"

#include "troupe/stores/postgres/schema.hpp"
#include "troupe/stores/shared/run_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

namespace troupe {

namespace {

// The server's time, in microseconds since 1970.
#define TROUPE_NOW "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"

constexpr postgres_statement open_runs
  = {"open_runs",
     "INSERT INTO open_runs (scope, invocation, agent, holder, opened)"
     " SELECT n.scope, n.invocation, n.agent, n.holder, " TROUPE_NOW
     " FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[])"
     "   AS n(scope, invocation, agent, holder)"
     " ON CONFLICT (scope, invocation) DO UPDATE"
     "   SET agent = excluded.agent, holder = excluded.holder"};

constexpr postgres_statement hand_over_runs
  = {"hand_over_runs",
     "UPDATE open_runs AS r SET agent = n.agent, holder = n.holder"
     " FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[],"
     "             $5::text[])"
     "   AS n(scope, invocation, agent, holder, held_by)"
     " WHERE r.scope = n.scope AND r.invocation = n.invocation"
     "   AND r.holder = n.held_by"};

constexpr postgres_statement close_runs
  = {"close_runs",
     "DELETE FROM open_runs AS r"
     " USING unnest($1::bigint[], $2::text[], $3::text[])"
     "   AS n(scope, invocation, holder)"
     " WHERE r.scope = n.scope AND r.invocation = n.invocation"
     "   AND (n.holder = '' OR r.holder = n.holder)"};

constexpr postgres_statement renew_holders
  = {"renew_holders",
     "INSERT INTO run_holders (id, renewed)"
     " SELECT n.id, " TROUPE_NOW " FROM unnest($1::text[]) AS n(id)"
     " ON CONFLICT (id) DO UPDATE SET renewed = excluded.renewed"};

// Skips the rows that another process deletes at the same time. A row that is
// renewed meanwhile stays: the condition is checked again on the new row.
constexpr postgres_statement forget_silent
  = {"forget_silent_holders",
     "DELETE FROM run_holders AS h WHERE h.id IN ("
     "  SELECT o.id FROM run_holders AS o"
     "  WHERE o.renewed < " TROUPE_NOW " - $1::bigint"
     "    AND NOT EXISTS (SELECT FROM open_runs AS r WHERE r.holder = o.id)"
     "  FOR UPDATE OF o SKIP LOCKED)"};

constexpr postgres_statement forget_holder
  = {"forget_holder", "DELETE FROM run_holders WHERE id = $1::text"};

constexpr postgres_statement find_open
  = {"find_open_runs",
     "SELECT r.scope, r.invocation, r.holder, " TROUPE_NOW " - h.renewed"
     " FROM open_runs AS r LEFT JOIN run_holders AS h ON h.id = r.holder"
     " WHERE r.scope = ANY ($1::bigint[])"};

// Uses the order of the index. The first condition alone can use it.
#define TROUPE_RUNS(WHICH)                                                     \
  "SELECT s.app, s.usr, s.session, r.invocation, r.agent, r.holder, r.opened," \
  " " TROUPE_NOW " - h.renewed"                                                \
  " FROM open_runs AS r JOIN scopes AS s ON s.id = r.scope"                    \
  " LEFT JOIN run_holders AS h ON h.id = r.holder"                             \
  " WHERE r.opened >= $1::bigint"                                              \
  " AND (r.opened, r.invocation, s.app, s.usr, s.session)"                     \
  "   > ($1::bigint, $2::text, $3::text, $4::text, $5::text)"                  \
  " AND " WHICH " ORDER BY r.opened, r.invocation, s.app, s.usr, s.session"    \
  " LIMIT $6::bigint"

constexpr postgres_statement list_all
  = {"list_runs", TROUPE_RUNS("($7::text = '' OR s.app = $7::text)")};
constexpr postgres_statement list_of_session
  = {"list_runs_of_session",
     TROUPE_RUNS("s.app = $7::text AND s.usr = $8::text"
                 " AND s.session = $9::text")};

#undef TROUPE_RUNS
#undef TROUPE_NOW

// A sign of life in the future: the clock was set back. A process that lives
// renews it soon.
std::optional<std::chrono::microseconds>
silence_in(const postgres_rows& rows, int row, int column) {
  if (rows.is_null(row, column))
    return std::nullopt;
  return std::chrono::microseconds(std::abs(rows.number(row, column)));
}

// Marks of one kind on different runs, for one statement.
class run_batch {
public:
  explicit run_batch(postgres_connection& connection)
    : connection_(connection) {}

  void add(const planned_run& run) {
    const auto& mark = *run.mark;
    if (mark.opens != opens_ || mark.held_by.has_value() != hands_over_
        || !seen_.emplace(run.scope, mark.invocation_id).second)
      flush();
    opens_ = mark.opens;
    hands_over_ = mark.held_by.has_value();
    seen_.emplace(run.scope, mark.invocation_id);
    scopes_.push_back(run.scope);
    invocations_.emplace_back(mark.invocation_id);
    agents_.emplace_back(mark.agent);
    holders_.emplace_back(mark.holder);
    if (mark.held_by)
      former_.emplace_back(*mark.held_by);
  }

  void flush() {
    if (!scopes_.empty() && opens_ && hands_over_)
      connection_.queue(hand_over_runs,
                        postgres_parameters()
                          .add(scopes_)
                          .add(invocations_)
                          .add(agents_)
                          .add(holders_)
                          .add(former_));
    else if (!scopes_.empty() && opens_)
      connection_.queue(open_runs,
                        postgres_parameters()
                          .add(scopes_)
                          .add(invocations_)
                          .add(agents_)
                          .add(holders_));
    else if (!scopes_.empty())
      connection_.queue(
        close_runs,
        postgres_parameters().add(scopes_).add(invocations_).add(holders_));
    seen_.clear();
    scopes_.clear();
    invocations_.clear();
    agents_.clear();
    holders_.clear();
    former_.clear();
  }

private:
  postgres_connection& connection_; // The caller's.
  bool opens_ = true;
  bool hands_over_ = false;
  std::set<std::pair<std::int64_t, std::string_view>> seen_;
  std::vector<std::int64_t> scopes_;
  std::vector<std::string_view> invocations_;
  std::vector<std::string_view> agents_;
  std::vector<std::string_view> holders_;
  std::vector<std::string_view> former_;
};

result<void> run_all(postgres_connection& connection,
                     std::string_view attempted) {
  const auto answers = connection.run(attempted, postgres_deadline);
  return answers ? result<void>() : answers.error();
}

} // namespace

// A session that the commit creates has no other runs.
result<std::vector<kept_out_run>>
find_kept_out_runs(postgres_connection& connection,
                   std::span<const store_change> changes,
                   const postgres_known& known,
                   std::string_view attempted) {
  std::map<std::int64_t, owner_name> sessions;
  std::vector<std::int64_t> ids;
  for (auto& session : sessions_to_gate(changes))
    if (const auto found = known.scopes.find(session);
        found != known.scopes.end() && found->second) {
      ids.push_back(found->second->id);
      sessions.emplace(found->second->id, std::move(session));
    }
  if (ids.empty())
    return std::vector<kept_out_run>();
  connection.queue(find_open, postgres_parameters().add(ids));
  const auto answers = connection.run(attempted, postgres_deadline);
  if (!answers)
    return answers.error();
  const auto& rows = answers->front();
  run_gate gate;
  for (int i = 0; i < rows.size(); ++i)
    gate.add(sessions.at(rows.number(i, 0)),
             std::string(rows.text(i, 1)),
             std::string(rows.text(i, 2)),
             silence_in(rows, i, 3));
  return std::move(gate).judge(changes);
}

void queue_postgres_runs(postgres_connection& connection,
                         std::span<const planned_run> runs) {
  if (runs.empty())
    return;
  run_batch batch(connection);
  std::set<std::string_view> holders;
  for (const auto& run : runs) {
    batch.add(run);
    if (run.mark->opens)
      holders.insert(run.mark->holder);
  }
  batch.flush();
  if (holders.empty())
    return;
  // In one order, so that two transactions do not wait for each other.
  const std::vector<std::string_view> ids(holders.begin(), holders.end());
  connection.queue(renew_holders, postgres_parameters().add(ids));
}

result<std::vector<open_run>>
list_postgres_runs(postgres_connection& connection,
                   postgres_history& history,
                   const run_query& query) {
  const auto behind
    = query.behind.value_or(run_position{timestamp::min(), {}, {}});
  postgres_parameters parameters;
  parameters.add(behind.opened.time_since_epoch().count())
    .add(behind.invocation_id)
    .add(behind.key.app)
    .add(behind.key.user)
    .add(behind.key.id)
    .add_limit(query.limit);
  if (query.session)
    parameters.add(query.session->app)
      .add(query.session->user)
      .add(query.session->id);
  else
    parameters.add(query.app);
  const auto answer = history.read(connection,
                                   query.session ? list_of_session : list_all,
                                   parameters,
                                   "list the open runs");
  if (!answer)
    return answer.error();
  std::vector<open_run> listed;
  for (int i = 0; i < answer->size(); ++i) {
    auto& found = listed.emplace_back();
    found.key = {std::string(answer->text(i, 0)),
                 std::string(answer->text(i, 1)),
                 std::string(answer->text(i, 2))};
    found.invocation_id = answer->text(i, 3);
    found.agent = answer->text(i, 4);
    found.holder = answer->text(i, 5);
    found.opened = answer->time(i, 6);
    found.silent = silence_in(*answer, i, 7);
  }
  return listed;
}

result<void> renew_postgres_holder(postgres_connection& connection,
                                   const std::string& id) {
  constexpr auto kept = std::chrono::microseconds(silent_holder_kept).count();
  const std::vector<std::string_view> ids{id};
  connection.queue(renew_holders, postgres_parameters().add(ids));
  connection.queue(forget_silent,
                   postgres_parameters().add(std::int64_t{kept}));
  return run_all(connection, "renew the holder of runs");
}

result<void> remove_postgres_holder(postgres_connection& connection,
                                    const std::string& id) {
  connection.queue(forget_holder, postgres_parameters().add(id));
  return run_all(connection, "remove the holder of runs");
}

} // namespace troupe
