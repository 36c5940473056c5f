#include "troupe/stores/postgres/session_list.hpp"

#include "troupe/stores/postgres/event.hpp"
#include "troupe/stores/shared/stored_event.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace troupe {

namespace {

// Kinds of rows in the answer of a list: sessions of the page, then the state
// of every scope on it.
enum list_part : std::int64_t { listed_scope, listed_state };

// Uses the order of an index: first the sessions behind the position with the
// same time, then older ones. The operators are those of that index; otherwise
// a planner without statistics would use the index of names and read all
// sessions.
#define TROUPE_NEWEST(WHICH, BEHIND, ORDER)                                    \
  "  (SELECT * FROM scopes"                                                    \
  "   WHERE app = $1::text AND session <> '' AND revision >= 0" WHICH          \
  "     AND updated = $4::bigint AND " BEHIND                                  \
  "   ORDER BY updated DESC, " ORDER " LIMIT $3::bigint)"                      \
  "  UNION ALL"                                                                \
  "  (SELECT * FROM scopes"                                                    \
  "   WHERE app = $1::text AND session <> '' AND revision >= 0" WHICH          \
  "     AND updated < $4::bigint"                                              \
  "   ORDER BY updated DESC, " ORDER " LIMIT $3::bigint)"                      \
  "  LIMIT $3::bigint"

// Uses the order of the index of names.
#define TROUPE_NAMES(WHICH, ORDER)                                             \
  "SELECT * FROM scopes"                                                       \
  " WHERE app = $1::text AND session <> '' AND revision >= 0 AND " WHICH       \
  " ORDER BY " ORDER " LIMIT $3::bigint"

#define TROUPE_PAGE(FOUND)                                                     \
  "WITH found AS MATERIALIZED (" FOUND "),"                                    \
  " page AS MATERIALIZED ("                                                    \
  "  SELECT s.id, u.id AS user_id, a.id AS app_id, s.revision, s.updated,"     \
  "         s.usr, s.session"                                                  \
  "  FROM found AS s"                                                          \
  "  JOIN scopes AS u ON u.app = $1::text AND u.usr = s.usr"                   \
  "    AND u.session = ''"                                                     \
  "  JOIN scopes AS a ON a.app = $1::text AND a.usr = '' AND a.session = '')"  \
  "SELECT 0 AS part, id, user_id, app_id, revision, updated,"                  \
  "       usr AS t1, session AS t2 FROM page "                                 \
  "UNION ALL "                                                                 \
  "SELECT 1, scope, 0, 0, 0, 0, key, value FROM state WHERE scope IN ("        \
  "  SELECT id FROM page UNION SELECT user_id FROM page"                       \
  "  UNION SELECT app_id FROM page)"

constexpr postgres_statement list_user = {
  "list_user",
  TROUPE_PAGE(TROUPE_NEWEST(" AND usr = $2::text",
                            "$2::text COLLATE \"C\" >= $5::text COLLATE \"C\""
                            " AND session ~>~ CASE WHEN $2::text = $5::text"
                            " THEN $6::text ELSE '' END",
                            "session USING ~<~"))};
constexpr postgres_statement list_app
  = {"list_app",
     TROUPE_PAGE(TROUPE_NEWEST(" AND $2::text = ''",
                               "(usr, session) ~>~ ($5::text, $6::text)",
                               "usr USING ~<~, session USING ~<~"))};
constexpr postgres_statement list_user_names
  = {"list_user_names",
     TROUPE_PAGE(
       TROUPE_NAMES("usr = $2::text AND session > CASE"
                    " WHEN $2::text = $4::text THEN $5::text ELSE '' END"
                    " AND $2::text COLLATE \"C\" >= $4::text COLLATE \"C\"",
                    "session"))};
constexpr postgres_statement list_app_names
  = {"list_app_names",
     TROUPE_PAGE(TROUPE_NAMES("$2::text = ''"
                              " AND (usr, session) > ($4::text, $5::text)",
                              "usr, session"))};

#undef TROUPE_PAGE
#undef TROUPE_NAMES
#undef TROUPE_NEWEST

// Each step finds the next name by the index of names, and so skips the rows
// between two names. The parts of `list_apps` are scalar: a planner could
// answer an `EXISTS` by a hash of all scopes.
constexpr postgres_statement list_users = {"list_users", R"(
WITH RECURSIVE names(name) AS (
  (SELECT usr FROM scopes WHERE app = $1::text AND usr > $3::text
   ORDER BY usr LIMIT 1)
  UNION ALL
  SELECT (SELECT s.usr FROM scopes AS s
          WHERE s.app = $1::text AND s.usr > names.name
          ORDER BY s.usr LIMIT 1)
  FROM names WHERE names.name IS NOT NULL)
SELECT name FROM names WHERE name IS NOT NULL LIMIT $2::bigint)"};
constexpr postgres_statement list_apps = {"list_apps", R"(
WITH RECURSIVE names(name) AS (
  (SELECT app FROM scopes WHERE app > $2::text ORDER BY app LIMIT 1)
  UNION ALL
  SELECT (SELECT s.app FROM scopes AS s WHERE s.app > names.name
          ORDER BY s.app LIMIT 1)
  FROM names WHERE names.name IS NOT NULL)
SELECT name FROM names WHERE name IS NOT NULL
  AND ((SELECT u.id FROM scopes AS u WHERE u.app = names.name AND u.usr > ''
        ORDER BY u.usr LIMIT 1) IS NOT NULL
    OR (SELECT state.scope FROM state WHERE state.scope = (
          SELECT a.id FROM scopes AS a
          WHERE a.app = names.name AND a.usr = '' AND a.session = '')
        LIMIT 1) IS NOT NULL)
LIMIT $1::bigint)"};

// Reads the names of users or apps.
result<std::vector<std::string>>
read_names(postgres_connection& connection,
           postgres_history& history,
           const postgres_statement& statement,
           const postgres_parameters& parameters,
           std::string_view attempted) {
  const auto rows = history.read(connection, statement, parameters, attempted);
  if (!rows)
    return rows.error();
  std::vector<std::string> names;
  names.reserve(static_cast<std::size_t>(rows->size()));
  for (int i = 0; i < rows->size(); ++i)
    names.emplace_back(rows->text(i, 0));
  std::ranges::sort(names);
  return names;
}

// Reads the rows of a list in any order.
result<std::vector<session_row>>
read_list(postgres_connection& connection,
          postgres_history& history,
          const postgres_statement& statement,
          const postgres_parameters& parameters,
          const owner_name& asked) {
  const auto attempted
    = fmt::format("list the sessions of {}", to_string(asked));
  const auto answer
    = history.read(connection, statement, parameters, attempted);
  if (!answer)
    return answer.error();
  const auto& rows = *answer;
  std::unordered_map<std::int64_t, state_map> states;
  for (int i = 0; i < rows.size(); ++i) {
    if (rows.number(i, 0) != listed_state)
      continue;
    auto data = decode_value(rows.text(i, 7));
    if (!data)
      return unreadable(attempted, data.error());
    states[rows.number(i, 1)].set(rows.text(i, 6), *std::move(data));
  }
  std::vector<session_row> listed;
  for (int i = 0; i < rows.size(); ++i) {
    if (rows.number(i, 0) != listed_scope)
      continue;
    listed.push_back(
      {{asked.app, std::string(rows.text(i, 6)), std::string(rows.text(i, 7))},
       states[rows.number(i, 1)],
       states[rows.number(i, 2)],
       states[rows.number(i, 3)],
       static_cast<std::uint64_t>(rows.number(i, 4)),
       rows.time(i, 5)});
  }
  return listed;
}

} // namespace

result<std::vector<session_row>>
list_postgres_sessions(postgres_connection& connection,
                       postgres_history& history,
                       const row_query& query) {
  const row_position everything{timestamp::max(), "", ""};
  const auto& behind = query.behind ? *query.behind : everything;
  auto listed
    = read_list(connection,
                history,
                query.user ? list_user : list_app,
                postgres_parameters()
                  .add(query.app)
                  .add(query.user ? *query.user : "")
                  .add_limit(query.limit)
                  .add(behind.last_update_time.time_since_epoch().count())
                  .add(behind.user)
                  .add(behind.session),
                {query.app, query.user.value_or("")});
  if (!listed)
    return listed;
  std::ranges::sort(*listed, [](const auto& left, const auto& right) {
    if (left.last_update_time != right.last_update_time)
      return left.last_update_time > right.last_update_time;
    return std::tie(left.key.user, left.key.id)
           < std::tie(right.key.user, right.key.id);
  });
  return listed;
}

result<std::vector<session_row>>
list_postgres_sessions(postgres_connection& connection,
                       postgres_history& history,
                       const name_query& query) {
  auto listed = read_list(connection,
                          history,
                          query.user ? list_user_names : list_app_names,
                          postgres_parameters()
                            .add(query.app)
                            .add(query.user ? *query.user : "")
                            .add_limit(query.limit)
                            .add(query.behind ? query.behind->user : "")
                            .add(query.behind ? query.behind->id : ""),
                          {query.app, query.user.value_or("")});
  if (!listed)
    return listed;
  std::ranges::sort(*listed, {}, [](const session_row& row) {
    return std::tie(row.key.user, row.key.id);
  });
  return listed;
}

result<std::vector<std::string>>
list_postgres_users(postgres_connection& connection,
                    postgres_history& history,
                    const user_query& query) {
  return read_names(connection,
                    history,
                    list_users,
                    postgres_parameters()
                      .add(query.app)
                      .add_limit(query.limit)
                      .add(query.behind),
                    fmt::format("list the users of {}", query.app));
}

result<std::vector<std::string>>
list_postgres_apps(postgres_connection& connection,
                   postgres_history& history,
                   const app_query& query) {
  return read_names(
    connection,
    history,
    list_apps,
    postgres_parameters().add_limit(query.limit).add(query.behind),
    "list the apps");
}

} // namespace troupe
