#include "troupe/stores/postgres/removal.hpp"

#include "troupe/stores/postgres/event.hpp"
#include "troupe/stores/postgres/folder.hpp"
#include "troupe/stores/postgres/schema.hpp"
#include "troupe/stores/shared/stored_event.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

// Invariant: a row is deleted only if no load needs it. A load replays the rows
// of a session that are not folded, and returns those behind its first revision
// and those that its forks share.
//
// So a trim folds the log in its own transaction, unless the session is folded
// as far as needed, which is usual. The alternative, deleting the rest at the
// next trim, would leave events in the database that the commit has promised to
// delete.
//
// The newest row of a session always stays, without its event. By it other
// processes learn the session's newest revision.

namespace {

constexpr postgres_statement drop_state
  = {"drop_state", "DELETE FROM state WHERE scope = $1::bigint"};

// Statements for the log rows of a scope in a range of revisions.
struct row_statements {
  // Deletes the rows that touch no wider scope.
  postgres_statement drop;
  // Finds the next of the other rows.
  postgres_statement find;
  // Leaves their part for the wider scopes.
  postgres_statement keep;
};

#define TROUPE_KEEP(CLEARED)                                                   \
  "UPDATE change_log SET " CLEARED " delta = nullif(n.delta, '')"              \
  " FROM unnest($1::bigint[], $2::text[]) AS n(id, delta)"                     \
  " WHERE change_log.id = n.id"

// The rows behind revision $2 up to $3.
constexpr row_statements session_rows
  = {{"drop_session_rows",
      "DELETE FROM change_log"
      " WHERE session = $1::bigint AND session_revision > $2::bigint"
      " AND session_revision <= $3::bigint AND usr IS NULL AND app IS NULL"},
     {"find_session_rows",
      "SELECT id, delta FROM change_log"
      " WHERE session = $1::bigint AND session_revision > $2::bigint"
      " AND session_revision <= $3::bigint"
      " ORDER BY session_revision LIMIT $4::bigint"},
     {"keep_wider_share",
      TROUPE_KEEP("session = NULL, session_revision = NULL, kind = 2,"
                  " event = NULL, event_hash = NULL, body = NULL,")}};

constexpr row_statements user_rows = {
  {"drop_user_rows",
   "DELETE FROM change_log"
   " WHERE session IS NULL AND usr = $1::bigint AND user_revision > $2::bigint"
   " AND user_revision <= $3::bigint AND app IS NULL"},
  {"find_user_rows",
   "SELECT id, delta FROM change_log WHERE session IS NULL AND usr = $1::bigint"
   " AND user_revision > $2::bigint AND user_revision <= $3::bigint"
   " ORDER BY user_revision LIMIT $4::bigint"},
  {"keep_app_share", TROUPE_KEEP("usr = NULL, user_revision = NULL,")}};

// The newest row of a trimmed session.
constexpr postgres_statement find_row
  = {"find_row",
     "SELECT id, delta FROM change_log"
     " WHERE session = $1::bigint AND session_revision = $2::bigint"};
constexpr postgres_statement strip_row
  = {"strip_row",
     TROUPE_KEEP("kind = 2, event = NULL, event_hash = NULL, body = NULL,")};

#undef TROUPE_KEEP

constexpr postgres_statement drop_scope
  = {"drop_scope", "DELETE FROM scopes WHERE id = $1::bigint"};

constexpr postgres_statement drop_runs
  = {"drop_runs", "DELETE FROM open_runs WHERE scope = $1::bigint"};

constexpr postgres_statement drop_first
  = {"drop_first", "DELETE FROM first_states WHERE scope = $1::bigint"};
constexpr postgres_statement set_first = {"set_first", R"(
INSERT INTO first_states AS f (scope, revision, updated, delta)
VALUES ($1::bigint, $2::bigint, $3::bigint, $4::text)
ON CONFLICT (scope) DO UPDATE SET revision = excluded.revision,
  updated = excluded.updated, delta = excluded.delta
  WHERE f.revision < excluded.revision)"};

// The first revision of a trimmed session, its folded revision, the newest one
// that forks share, and the newest one in the log.
constexpr postgres_statement find_trimmed = {"find_trimmed", R"(
SELECT f.revision, s.revision,
  (SELECT u.past_revision FROM scopes AS u WHERE u.past = s.id
     ORDER BY u.past_revision DESC LIMIT 1),
  (SELECT l.session_revision FROM change_log AS l WHERE l.session = s.id
     ORDER BY l.session_revision DESC LIMIT 1)
FROM scopes AS s JOIN first_states AS f ON f.scope = s.id
WHERE s.id = $1::bigint)"};
// The past of a scope, and the newest revision of it that forks share.
constexpr postgres_statement find_uses = {"find_uses", R"(
SELECT s.app = '', s.past,
  (SELECT f.past_revision FROM scopes AS f WHERE f.past = s.id
     ORDER BY f.past_revision DESC LIMIT 1)
FROM scopes AS s WHERE s.id = $1::bigint)"};

// Takes the names from a removed session whose events forks share. No list
// shows it, and nothing reads its state.
constexpr postgres_statement hide_scope = {"hide_scope", R"(
UPDATE scopes SET app = '', usr = '', session = id::text,
  revision = least(revision, $2::bigint) WHERE id = $1::bigint)"};

constexpr postgres_statement add_removal = {"add_removal", R"(
INSERT INTO change_log (id, writer, time, kind, body)
VALUES ($1::bigint, $2::bigint,
        (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
        $3::bigint,
        json_build_object('app', $4::text, 'usr', $5::text,
                          'session', $6::text, 'id', $7::bigint)::text))"};

constexpr std::int64_t stripped_at_once = 4'096;

// Returns the part of a delta's text for the scopes wider than `removed`.
result<std::string> wider_share(std::string_view text, scope removed) {
  std::string share;
  if (text.empty())
    return share;
  auto changed = decode_delta(text);
  if (!changed)
    return changed.error();
  changed->drop(scope::session);
  if (removed == scope::user)
    changed->drop(scope::user);
  if (!changed->empty())
    if (auto written = encode(*changed, share); !written)
      return written.error();
  return share;
}

// The revision before all rows.
constexpr std::int64_t none_kept = -1;

// The revisions behind `kept` up to `last`.
struct row_range {
  std::int64_t kept = none_kept;
  std::int64_t last = std::numeric_limits<std::int64_t>::max();
};

// Deletes rows of a scope, but for the shares of wider scopes.
result<void> drop_rows(postgres_connection& connection,
                       std::int64_t scope_id,
                       scope where,
                       const row_range& range,
                       std::string_view attempted) {
  const auto& rows_of = where == scope::session ? session_rows : user_rows;
  connection.queue(
    rows_of.drop,
    postgres_parameters().add(scope_id).add(range.kept).add(range.last));
  // Edits the text here: the JSON functions of the database do not accept
  // "\u0000".
  for (;;) {
    connection.queue(rows_of.find,
                     postgres_parameters()
                       .add(scope_id)
                       .add(range.kept)
                       .add(range.last)
                       .add(stripped_at_once));
    auto answers = connection.run(attempted, postgres_deadline);
    if (!answers)
      return answers.error();
    const auto& rows = answers->back();
    if (rows.size() == 0)
      return {};
    std::vector<std::int64_t> ids;
    std::vector<std::string> shares;
    for (int i = 0; i < rows.size(); ++i) {
      auto share = wider_share(rows.text(i, 1), where);
      if (!share)
        return unreadable(attempted, share.error());
      ids.push_back(rows.number(i, 0));
      shares.push_back(*std::move(share));
    }
    const std::vector<std::string_view> texts(shares.begin(), shares.end());
    connection.queue(rows_of.keep, postgres_parameters().add(ids).add(texts));
  }
}

// Takes the event and the session's share from a row, which must be folded.
result<void> strip(postgres_connection& connection,
                   std::int64_t scope_id,
                   std::int64_t revision,
                   std::string_view attempted) {
  connection.queue(find_row, postgres_parameters().add(scope_id).add(revision));
  const auto answers = connection.run(attempted, postgres_deadline);
  if (!answers)
    return answers.error();
  const auto& rows = answers->back();
  if (rows.size() == 0)
    return {};
  const auto share = wider_share(rows.text(0, 1), scope::session);
  if (!share)
    return unreadable(attempted, share.error());
  connection.queue(strip_row,
                   postgres_parameters()
                     .add(std::vector{rows.number(0, 0)})
                     .add(std::vector<std::string_view>{*share}));
  return {};
}

// Deletes the rows up to the first revision of a trimmed session. Keeps rows
// that are not folded, such as the creation row of a fork whose first revision
// is its creation.
result<void> drop_trimmed(postgres_connection& connection,
                          std::int64_t scope_id,
                          std::string_view attempted) {
  connection.queue(find_trimmed, postgres_parameters().add(scope_id));
  const auto answers = connection.run(attempted, postgres_deadline);
  if (!answers)
    return answers.error();
  const auto& rows = answers->back();
  if (rows.size() == 0)
    return {};
  const auto last = std::min(rows.number(0, 0), rows.number(0, 1));
  const auto shared = rows.is_null(0, 2) ? none_kept : rows.number(0, 2);
  const auto newest = rows.number(0, 3);
  if (auto dropped = drop_rows(connection,
                               scope_id,
                               scope::session,
                               {shared, std::min(last, newest - 1)},
                               attempted);
      !dropped)
    return dropped;
  if (last < newest || newest <= shared)
    return {};
  return strip(connection, scope_id, newest, attempted);
}

struct scope_uses {
  bool is_there = false;
  bool is_hidden = false;
  std::int64_t past = 0; // 0: none.
  std::optional<std::int64_t> last_used;
};

result<scope_uses> uses_of(postgres_connection& connection,
                           std::int64_t scope_id,
                           std::string_view attempted) {
  connection.queue(find_uses, postgres_parameters().add(scope_id));
  auto answers = connection.run(attempted, postgres_deadline);
  if (!answers)
    return answers.error();
  const auto& rows = answers->back();
  scope_uses found;
  if (rows.size() == 0)
    return found;
  found.is_there = true;
  found.is_hidden = rows.text(0, 0) == "t";
  found.past = rows.is_null(0, 1) ? 0 : rows.number(0, 1);
  if (!rows.is_null(0, 2))
    found.last_used = rows.number(0, 2);
  return found;
}

// Removes a session, or leaves the part that forks share, without names. Does
// the same to its past, if that was only kept for it.
result<void> remove_session(postgres_connection& connection,
                            std::int64_t scope_id,
                            std::string_view attempted) {
  for (bool is_past = false; scope_id != 0; is_past = true) {
    const auto uses = uses_of(connection, scope_id, attempted);
    if (!uses)
      return uses.error();
    if (is_past && !uses->is_there)
      return {};
    // A trim may have left rows of a session for the removed fork.
    if (is_past && !uses->is_hidden)
      return drop_trimmed(connection, scope_id, attempted);
    connection.queue(drop_state, postgres_parameters().add(scope_id));
    if (auto dropped = drop_rows(connection,
                                 scope_id,
                                 scope::session,
                                 {.kept = uses->last_used.value_or(none_kept)},
                                 attempted);
        !dropped)
      return dropped;
    if (uses->last_used) {
      connection.queue(
        hide_scope, postgres_parameters().add(scope_id).add(*uses->last_used));
      return {};
    }
    connection.queue(drop_scope, postgres_parameters().add(scope_id));
    connection.queue(drop_first, postgres_parameters().add(scope_id));
    scope_id = uses->past;
  }
  return {};
}

result<void> remove_user(postgres_connection& connection,
                         std::int64_t scope_id,
                         std::string_view attempted) {
  connection.queue(drop_state, postgres_parameters().add(scope_id));
  if (auto dropped
      = drop_rows(connection, scope_id, scope::user, {}, attempted);
      !dropped)
    return dropped;
  connection.queue(drop_scope, postgres_parameters().add(scope_id));
  return {};
}

} // namespace

result<void> remove_postgres_scope(postgres_connection& connection,
                                   const planned_removal& removal,
                                   std::int64_t writer,
                                   std::string_view attempted) {
  const auto& owner = removal.owner;
  const bool is_session = owner.where() == scope::session;
  if (is_session)
    connection.queue(drop_runs, postgres_parameters().add(removal.scope));
  if (auto removed = is_session
                       ? remove_session(connection, removal.scope, attempted)
                       : remove_user(connection, removal.scope, attempted);
      !removed)
    return removed;
  const auto kind = is_session ? change_kind::remove : change_kind::remove_user;
  connection.queue(add_removal,
                   postgres_parameters()
                     .add(removal.id)
                     .add(writer)
                     .add(static_cast<std::int64_t>(kind))
                     .add(owner.app)
                     .add(owner.user)
                     .add(owner.session)
                     .add(removal.scope));
  return {};
}

result<void> trim_postgres_session(postgres_connection& connection,
                                   const planned_trim& trim,
                                   std::string_view attempted) {
  const auto& said = *trim.change->event;
  const auto first = static_cast<std::int64_t>(trim.change->kept->revision);
  std::string keys;
  if (auto encoded = encode(said.actions.state_delta, keys); !encoded)
    return encoded;
  connection.queue(set_first,
                   postgres_parameters()
                     .add(trim.scope)
                     .add(first)
                     .add(said.timestamp.time_since_epoch().count())
                     .add(keys));
  connection.queue(find_trimmed, postgres_parameters().add(trim.scope));
  const auto answers = connection.run(attempted, postgres_deadline);
  if (!answers)
    return answers.error();
  const auto& rows = answers->back();
  if (rows.size() > 0 && rows.number(0, 1) < rows.number(0, 0))
    if (auto folded = fold_in_transaction(connection); !folded)
      return folded;
  return drop_trimmed(connection, trim.scope, attempted);
}

} // namespace troupe
