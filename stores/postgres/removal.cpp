#include "troupe/stores/postgres/removal.hpp"

#include "troupe/stores/postgres/event.hpp"
#include "troupe/stores/postgres/schema.hpp"
#include "troupe/stores/shared/stored_event.hpp"

#include <string>
#include <utility>
#include <vector>

namespace troupe {

namespace {

constexpr postgres_statement drop_state
  = {"drop_state", "DELETE FROM state WHERE scope = $1::bigint"};

// Statements for the log rows of a removed scope.
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

constexpr row_statements session_rows
  = {{"drop_session_rows",
      "DELETE FROM change_log"
      " WHERE session = $1::bigint AND usr IS NULL AND app IS NULL"},
     {"find_session_rows",
      "SELECT id, delta FROM change_log WHERE session = $1::bigint"
      " ORDER BY session_revision LIMIT $2::bigint"},
     {"keep_wider_share",
      TROUPE_KEEP("session = NULL, session_revision = NULL, kind = 2,"
                  " event = NULL, event_hash = NULL, body = NULL,")}};

constexpr row_statements user_rows = {
  {"drop_user_rows",
   "DELETE FROM change_log"
   " WHERE session IS NULL AND usr = $1::bigint AND app IS NULL"},
  {"find_user_rows",
   "SELECT id, delta FROM change_log WHERE session IS NULL AND usr = $1::bigint"
   " ORDER BY user_revision LIMIT $2::bigint"},
  {"keep_app_share", TROUPE_KEEP("usr = NULL, user_revision = NULL,")}};

#undef TROUPE_KEEP

constexpr postgres_statement drop_scope
  = {"drop_scope", "DELETE FROM scopes WHERE id = $1::bigint"};
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

} // namespace

result<void> remove_postgres_scope(postgres_connection& connection,
                                   const planned_removal& removal,
                                   std::int64_t writer,
                                   std::string_view attempted) {
  const auto& owner = removal.owner;
  const auto scope_id = postgres_parameters().add(removal.scope);
  const bool is_session = owner.where() == scope::session;
  const auto& rows_of = is_session ? session_rows : user_rows;
  connection.queue(drop_state, scope_id);
  connection.queue(rows_of.drop, scope_id);
  // Edits the text here: the JSON functions of the database do not accept
  // "\u0000".
  for (;;) {
    connection.queue(
      rows_of.find,
      postgres_parameters().add(removal.scope).add(stripped_at_once));
    auto answers = connection.run(attempted, postgres_deadline);
    if (!answers)
      return answers.error();
    const auto& rows = answers->back();
    if (rows.size() == 0)
      break;
    std::vector<std::int64_t> ids;
    std::vector<std::string> shares;
    for (int i = 0; i < rows.size(); ++i) {
      auto share = wider_share(rows.text(i, 1), owner.where());
      if (!share)
        return unreadable(attempted, share.error());
      ids.push_back(rows.number(i, 0));
      shares.push_back(*std::move(share));
    }
    const std::vector<std::string_view> texts(shares.begin(), shares.end());
    connection.queue(rows_of.keep, postgres_parameters().add(ids).add(texts));
  }
  connection.queue(drop_scope, scope_id);
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

} // namespace troupe
