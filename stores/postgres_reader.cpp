#include "troupe/stores/postgres_reader.hpp"

#include "troupe/stores/postgres_event.hpp"
#include "troupe/stores/postgres_schema.hpp"
#include "troupe/stores/stored_event.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace troupe {

namespace {

// What a row of a load is; the other columns by it:
//   part  | n1        | n2       | n3      | t1  | t2    | t3
//   scope |           | revision | updated |
//   state |           |          |         | key | value |
//   tail  | revision  |          | time    |     | delta |
//   event | revision  |          | time    | id  | delta | body
//   id    | revision  | hash     |
enum load_part : std::int64_t {
  part_scope,
  part_state,
  part_tail,
  part_event,
  part_id
};

constexpr postgres_statement load_owner = {"load_owner", R"(
WITH me AS MATERIALIZED (
  SELECT id, revision, updated FROM scopes
    WHERE app = $1::text AND usr = $2::text AND session = '')
SELECT 0 AS part, 0::bigint AS n1, revision AS n2, updated AS n3,
       NULL::text AS t1, NULL::text AS t2, NULL::text AS t3
  FROM me
UNION ALL
SELECT 1, 0, 0, 0, key, value, NULL
  FROM state WHERE scope = (SELECT id FROM me)
UNION ALL
SELECT 2, CASE WHEN $2::text <> '' THEN user_revision ELSE app_revision END,
       0, time, NULL, delta, NULL
  FROM log
  WHERE id > (SELECT id FROM folded)
    AND CASE WHEN $2::text <> '' THEN usr ELSE app END = (SELECT id FROM me)
)"};

constexpr postgres_statement load_session = {"load_session", R"(
WITH me AS MATERIALIZED (
  SELECT id, revision, updated FROM scopes
    WHERE app = $1::text AND usr = $2::text AND session = $3::text)
SELECT 0 AS part, 0::bigint AS n1, revision AS n2, updated AS n3,
       NULL::text AS t1, NULL::text AS t2, NULL::text AS t3
  FROM me
UNION ALL
SELECT 1, 0, 0, 0, key, value, NULL
  FROM state WHERE scope = (SELECT id FROM me)
UNION ALL
SELECT 2, session_revision, 0, time, NULL, delta, NULL
  FROM log
  WHERE session = (SELECT id FROM me)
    AND session_revision > (SELECT revision FROM me)
UNION ALL
(SELECT 3, session_revision, 0, time, event, delta, body
   FROM log WHERE session = (SELECT id FROM me) AND event_hash IS NOT NULL
   ORDER BY session_revision DESC LIMIT $4::bigint)
UNION ALL
(SELECT 4, session_revision, event_hash, 0, NULL, NULL, NULL
   FROM log WHERE session = (SELECT id FROM me) AND event_hash IS NOT NULL
   ORDER BY session_revision DESC LIMIT $5::bigint)
)"};

constexpr postgres_statement load_range = {"load_range", R"(
SELECT session_revision, time, event, delta, body
  FROM log
  WHERE session = (SELECT id FROM scopes WHERE app = $1::text
                     AND usr = $2::text AND session = $3::text)
    AND session_revision BETWEEN $4::bigint AND $5::bigint
    AND event_hash IS NOT NULL
  ORDER BY session_revision)"};

// -- lists: the page, then the state of every scope in it.

#define TROUPE_PAGE(WHICH)                                                     \
  "WITH newest AS MATERIALIZED ("                                              \
  "  SELECT * FROM scopes"                                                     \
  "  WHERE app = $1::text AND session <> '' AND revision >= 0" WHICH           \
  "    AND (updated < $4::bigint OR (updated = $4::bigint"                     \
  "         AND (usr, session) > ($5::text, $6::text)))"                       \
  "  ORDER BY updated DESC, usr, session LIMIT $3::bigint),"                   \
  " page AS MATERIALIZED ("                                                    \
  "  SELECT s.id, u.id AS user_id, a.id AS app_id, s.revision, s.updated,"     \
  "         s.usr, s.session"                                                  \
  "  FROM newest AS s"                                                         \
  "  JOIN scopes AS u ON u.app = s.app AND u.usr = s.usr AND u.session = ''"   \
  "  JOIN scopes AS a ON a.app = s.app AND a.usr = '' AND a.session = '')"     \
  "SELECT 0 AS part, id, user_id, app_id, revision, updated,"                  \
  "       usr AS t1, session AS t2 FROM page "                                 \
  "UNION ALL "                                                                 \
  "SELECT 1, scope, 0, 0, 0, 0, key, value FROM state WHERE scope IN ("        \
  "  SELECT id FROM page UNION SELECT user_id FROM page"                       \
  "  UNION SELECT app_id FROM page)"

constexpr postgres_statement list_user
  = {"list_user", TROUPE_PAGE(" AND usr = $2::text")};
constexpr postgres_statement list_app
  = {"list_app", TROUPE_PAGE(" AND $2::text = ''")};

#undef TROUPE_PAGE

std::int64_t bounded(std::size_t count) {
  return static_cast<std::int64_t>(
    std::min<std::size_t>(count, std::numeric_limits<std::int32_t>::max()));
}

timestamp time_of(std::int64_t microseconds) {
  return timestamp(std::chrono::microseconds(microseconds));
}

std::string describe(const owner_name& owner) {
  return fmt::format("load {}", to_string(owner));
}

// A stored text that does not read back.
error unreadable(const owner_name& owner, const error& why) {
  return {errc::corrupt, fmt::format("{}: {}", describe(owner), why.message())};
}

result<std::optional<stored_session>> read_scope(const postgres_rows& rows,
                                                 const owner_name& owner) {
  std::optional<stored_session> loaded;
  std::vector<std::pair<std::int64_t, int>> tail;
  for (int i = 0; i < rows.size(); ++i) {
    switch (rows.number(i, 0)) {
    case part_scope:
      loaded.emplace();
      // A new session is at -1 until its creation is replayed.
      loaded->scope.revision = static_cast<std::uint64_t>(rows.number(i, 2));
      loaded->last_update_time = time_of(
        rows.number(i, 2) < 0 ? std::numeric_limits<std::int64_t>::min()
                              : rows.number(i, 3));
      break;
    case part_state: {
      auto data = decode_value(rows.text(i, 5));
      if (!data)
        return unreadable(owner, data.error());
      loaded->scope.keys.set(rows.text(i, 4), *std::move(data));
      break;
    }
    case part_tail:
      tail.emplace_back(rows.number(i, 1), i);
      break;
    case part_event: {
      auto said = read_postgres_event(rows, i, 3);
      if (!said)
        return unreadable(owner, said.error());
      loaded->events.push_back(*std::move(said));
      break;
    }
    case part_id:
      loaded->id_hashes.push_back(
        static_cast<std::uint32_t>(rows.number(i, 2)));
      break;
    default:
      break;
    }
  }
  if (!loaded)
    return loaded;
  std::ranges::sort(tail);
  for (const auto& [revision, row] : tail) {
    if (auto replayed
        = replay_delta(loaded->scope, rows.text(row, 5), owner.where());
        !replayed)
      return unreadable(owner, replayed.error());
    loaded->scope.revision = static_cast<std::uint64_t>(revision);
    loaded->last_update_time
      = std::max(loaded->last_update_time, time_of(rows.number(row, 3)));
  }
  std::ranges::reverse(loaded->events);
  std::ranges::reverse(loaded->id_hashes);
  return loaded;
}

} // namespace

result<std::optional<stored_session>>
load_postgres(postgres_connection& connection,
              const owner_name& owner,
              const load_options& options) {
  if (owner.where() == scope::session)
    connection.queue(load_session,
                     postgres_parameters()
                       .add(owner.app)
                       .add(owner.user)
                       .add(owner.session)
                       .add(bounded(options.events_max))
                       .add(bounded(options.ids_max)));
  else
    connection.queue(load_owner,
                     postgres_parameters().add(owner.app).add(owner.user));
  auto answers = connection.run(describe(owner), postgres_deadline);
  if (!answers)
    return answers.error();
  return read_scope(answers->front(), owner);
}

result<std::vector<event_ptr>>
load_postgres_events(postgres_connection& connection,
                     const owner_name& owner,
                     std::uint64_t first,
                     std::uint64_t last) {
  constexpr std::uint64_t last_max = std::numeric_limits<std::int64_t>::max();
  connection.queue(load_range,
                   postgres_parameters()
                     .add(owner.app)
                     .add(owner.user)
                     .add(owner.session)
                     .add(static_cast<std::int64_t>(std::min(first, last_max)))
                     .add(static_cast<std::int64_t>(std::min(last, last_max))));
  auto answers = connection.run(describe(owner), postgres_deadline);
  if (!answers)
    return answers.error();
  const auto& rows = answers->front();
  std::vector<event_ptr> loaded;
  loaded.reserve(static_cast<std::size_t>(rows.size()));
  for (int i = 0; i < rows.size(); ++i) {
    auto said = read_postgres_event(rows, i, 1);
    if (!said)
      return unreadable(owner, said.error());
    loaded.push_back(*std::move(said));
  }
  return loaded;
}

result<std::vector<session_row>>
list_postgres_sessions(postgres_connection& connection,
                       const row_query& query) {
  const owner_name asked{query.app, query.user.value_or("")};
  const row_position everything{timestamp::max(), "", ""};
  const auto& behind = query.behind ? *query.behind : everything;
  connection.queue(query.user ? list_user : list_app,
                   postgres_parameters()
                     .add(query.app)
                     .add(query.user ? *query.user : "")
                     .add(bounded(query.limit))
                     .add(behind.last_update_time.time_since_epoch().count())
                     .add(behind.user)
                     .add(behind.session));
  auto answers
    = connection.run(fmt::format("list the sessions of {}", to_string(asked)),
                     postgres_deadline);
  if (!answers)
    return answers.error();
  const auto& rows = answers->front();
  std::unordered_map<std::int64_t, state_map> states;
  for (int i = 0; i < rows.size(); ++i) {
    if (rows.number(i, 0) != part_state)
      continue;
    auto data = decode_value(rows.text(i, 7));
    if (!data)
      return unreadable(asked, data.error());
    states[rows.number(i, 1)].set(rows.text(i, 6), *std::move(data));
  }
  std::vector<session_row> listed;
  for (int i = 0; i < rows.size(); ++i) {
    if (rows.number(i, 0) != part_scope)
      continue;
    listed.push_back(
      {{query.app, std::string(rows.text(i, 6)), std::string(rows.text(i, 7))},
       states[rows.number(i, 1)],
       states[rows.number(i, 2)],
       states[rows.number(i, 3)],
       static_cast<std::uint64_t>(rows.number(i, 4)),
       time_of(rows.number(i, 5))});
  }
  std::ranges::sort(listed, [](const auto& left, const auto& right) {
    if (left.last_update_time != right.last_update_time)
      return left.last_update_time > right.last_update_time;
    return std::tie(left.key.user, left.key.id)
           < std::tie(right.key.user, right.key.id);
  });
  return listed;
}

} // namespace troupe
