#include "troupe/stores/postgres/schema.hpp"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>

namespace troupe {

namespace {

constexpr std::string_view opening = "open the store's database";

// Migrations of the tables, one per version. Never edit a released one; add a
// new one. From version 3 on, a migration must also add a mark: a connected
// program that finds an unknown mark checks the version and refuses a newer
// one.
constexpr const char* version_1 = R"(
CREATE TABLE scopes (
  id bigint PRIMARY KEY,
  app text COLLATE "C" NOT NULL,
  usr text COLLATE "C" NOT NULL,
  session text COLLATE "C" NOT NULL,
  revision bigint NOT NULL,
  updated bigint NOT NULL
) WITH (fillfactor = 80);
CREATE UNIQUE INDEX scopes_names ON scopes (app, usr, session);

CREATE TABLE log (
  id bigint PRIMARY KEY,
  writer bigint NOT NULL,
  time bigint NOT NULL,
  session bigint,
  session_revision bigint,
  usr bigint,
  user_revision bigint,
  app bigint,
  app_revision bigint,
  kind smallint NOT NULL,
  event_hash integer,
  event text,
  delta text,
  body text
);
CREATE UNIQUE INDEX log_session ON log (session, session_revision)
  INCLUDE (event_hash) WHERE session IS NOT NULL;
CREATE INDEX log_user ON log (usr, user_revision)
  WHERE session IS NULL AND usr IS NOT NULL;
CREATE INDEX log_removals ON log (id) WHERE kind >= 3;

CREATE TABLE state (
  scope bigint NOT NULL,
  key text COLLATE "C" NOT NULL,
  value text NOT NULL,
  PRIMARY KEY (scope, key)
) WITH (fillfactor = 80);

CREATE TABLE folded (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  id bigint NOT NULL
);
INSERT INTO folded (id) VALUES (0);
)";

// A connected program of version 1 does not check the version. All its
// transactions read `log`, which fails from here on.
constexpr const char* version_2 = R"(
ALTER TABLE log RENAME TO change_log;
CREATE INDEX change_log_ids ON change_log (session, event_hash)
  WHERE event_hash IS NOT NULL AND session IS NOT NULL;

-- Of an operator class of their own: no other index can be taken for them.
CREATE INDEX scopes_newest ON scopes
  (app, updated DESC, usr text_pattern_ops, session text_pattern_ops)
  WHERE session <> '';
CREATE INDEX scopes_newest_of_user ON scopes
  (app, usr, updated DESC, session text_pattern_ops) WHERE session <> '';

CREATE TABLE marks (
  number bigint PRIMARY KEY,
  stamp bigint NOT NULL,
  before bigint NOT NULL
);
INSERT INTO marks SELECT 0, ('x' || substr(md5(random()::text
  || clock_timestamp()::text), 1, 16))::bit(64)::bigint & 9223372036854775807, 0;

CREATE FUNCTION refuse_version_1() RETURNS SETOF change_log
  LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'a newer troupe has brought the store''s tables to version 2,'
    ' this one knows version 1: restart with the newer program';
END $$;
CREATE VIEW log AS SELECT * FROM refuse_version_1();
)";

// A connected program of version 2 would delete events that forks share. It
// checks the version when it finds the mark.
constexpr const char* version_3 = R"(
ALTER TABLE scopes ADD COLUMN past bigint, ADD COLUMN past_revision bigint;
CREATE INDEX scopes_of_past ON scopes (past, past_revision)
  WHERE past IS NOT NULL;
INSERT INTO marks SELECT number + 1, ('x' || substr(md5(random()::text
  || clock_timestamp()::text), 1, 16))::bit(64)::bigint & 9223372036854775807,
  stamp FROM marks ORDER BY number DESC LIMIT 1;
)";

// A connected program of version 3 would take trimmed sessions for damaged
// ones. It checks the version when it finds the mark. The lock waits for the
// commits that have added their mark already, since two marks cannot have the
// same number.
constexpr const char* version_4 = R"(
LOCK TABLE marks IN SHARE ROW EXCLUSIVE MODE;
CREATE TABLE first_states (
  scope bigint PRIMARY KEY,
  revision bigint NOT NULL,
  updated bigint NOT NULL,
  delta text NOT NULL
);
INSERT INTO marks SELECT number + 1, ('x' || substr(md5(random()::text
  || clock_timestamp()::text), 1, 16))::bit(64)::bigint & 9223372036854775807,
  stamp FROM marks ORDER BY number DESC LIMIT 1;
)";

// A connected program of version 4 would leave the open runs of removed
// sessions. It checks the version when it finds the mark.
constexpr const char* version_5 = R"(
LOCK TABLE marks IN SHARE ROW EXCLUSIVE MODE;
CREATE TABLE open_runs (
  scope bigint NOT NULL,
  invocation text COLLATE "C" NOT NULL,
  agent text NOT NULL,
  holder text COLLATE "C" NOT NULL,
  opened bigint NOT NULL,
  PRIMARY KEY (scope, invocation)
);
CREATE INDEX open_runs_by_age ON open_runs (opened, invocation);
CREATE INDEX open_runs_of_holder ON open_runs (holder);
CREATE TABLE run_holders (
  id text COLLATE "C" PRIMARY KEY,
  renewed bigint NOT NULL
) WITH (fillfactor = 50);
INSERT INTO marks SELECT number + 1, ('x' || substr(md5(random()::text
  || clock_timestamp()::text), 1, 16))::bit(64)::bigint & 9223372036854775807,
  stamp FROM marks ORDER BY number DESC LIMIT 1;
)";

constexpr std::array<const char*, postgres_layout> migrations
  = {version_1, version_2, version_3, version_4, version_5};

constexpr postgres_statement find_settings
  = {"find_settings",
     "SELECT setting, source, current_setting('server_encoding'),"
     " current_setting('server_version_num')::integer"
     " FROM pg_settings WHERE name = 'search_path'"};

constexpr postgres_statement prepare_settings = {
  "prepare_settings",
  "SELECT set_config('search_path', quote_ident($1::text), false),"
  // Keeps a server setting beyond "on".
  " set_config('synchronous_commit', CASE WHEN $2::bigint = 0 THEN 'off'"
  " WHEN current_setting('synchronous_commit') = 'off' THEN 'on'"
  " ELSE current_setting('synchronous_commit') END, false),"
  " set_config('statement_timeout', $3::bigint::text, false),"
  // A client that hangs must not block the others for ever.
  " set_config('idle_in_transaction_session_timeout', $4::bigint::text, false),"
  " set_config('client_min_messages', 'warning', false),"
  " set_config('work_mem', '32MB', false),"
  // Every statement here can use an index in its order. A planner without
  // statistics would sometimes choose otherwise, and compile statements that it
  // thinks expensive.
  " set_config('plan_cache_mode', 'force_generic_plan', false),"
  " set_config('enable_seqscan', 'off', false),"
  " set_config('enable_sort', 'off', false),"
  " set_config('jit', 'off', false),"
  // Rows behind a parameter look many to the planner. To start processes for
  // them takes ten milliseconds.
  " set_config('max_parallel_workers_per_gather', '0', false),"
  " set_config('default_transaction_read_only', CASE WHEN $5::bigint = 0"
  " THEN current_setting('default_transaction_read_only') ELSE 'on' END, "
  "false),"
  " pg_is_in_recovery()"};

constexpr postgres_statement find_schema
  = {"find_schema",
     "SELECT quote_ident($1::text),"
     " to_regnamespace(quote_ident($1::text)) IS NOT NULL,"
     " to_regclass(quote_ident($1::text) || '.version') IS NOT NULL"};

constexpr postgres_statement find_version
  = {"find_version", "SELECT number FROM version"};

// Returns the first name of a `search_path`.
std::string first_schema(std::string_view path) {
  std::string name;
  if (!path.starts_with('"')) {
    const auto first = path.substr(0, path.find(','));
    name = first.substr(0, first.find_last_not_of(' ') + 1);
    return name;
  }
  for (std::size_t i = 1; i < path.size(); ++i) {
    if (path[i] == '"') {
      if (i + 1 == path.size() || path[i + 1] != '"')
        break;
      ++i;
    }
    name.push_back(path[i]);
  }
  return name;
}

// Returns the version of the tables; 0 if there are none.
result<std::size_t> version_of(postgres_connection& connection,
                               const postgres_setup& setup) {
  connection.queue(find_schema, postgres_parameters().add(setup.schema));
  auto answers = connection.run(opening, postgres_deadline);
  if (!answers)
    return answers.error();
  if (answers->front().text(0, 2) != "t")
    return 0;
  connection.queue(find_version);
  answers = connection.run(opening, postgres_deadline);
  if (!answers)
    return answers.error();
  const auto& found = answers->front();
  const auto version = found.size() == 1 ? found.number(0, 0) : 0;
  if (version < 1)
    return error(
      errc::corrupt,
      fmt::format("{}: its schema {} has no version", opening, setup.schema));
  if (version > static_cast<std::int64_t>(migrations.size()))
    return error(
      errc::corrupt,
      fmt::format("{}: its schema {} has version {}, made by a newer "
                  "troupe; this one knows up to {}",
                  opening,
                  setup.schema,
                  version,
                  migrations.size()));
  return static_cast<std::size_t>(version);
}

result<void> migrate(postgres_connection& connection,
                     const postgres_setup& setup) {
  // Locks outside the transaction. A transaction that waits for the lock would
  // not see tables that were made meanwhile.
  const auto lock = fmt::format(
    "SET statement_timeout = 0; SELECT pg_advisory_lock({})", setup.fold_lock);
  if (auto locked
      = connection.execute(opening, lock, postgres_migration_deadline);
      !locked)
    return locked;
  // Another process may have migrated the tables meanwhile.
  const auto version = version_of(connection, setup);
  if (!version)
    return version.error();
  std::string steps = "BEGIN;";
  if (*version == 0) {
    connection.queue(find_schema, postgres_parameters().add(setup.schema));
    auto answers = connection.run(opening, postgres_deadline);
    if (!answers)
      return answers.error();
    if (answers->front().text(0, 1) != "t")
      steps += fmt::format("CREATE SCHEMA {};", answers->front().text(0, 0));
    steps += "CREATE TABLE version (number integer NOT NULL);"
             "INSERT INTO version VALUES (0);";
  }
  for (auto next = *version; next < migrations.size(); ++next)
    steps += migrations[next];
  steps += fmt::format("UPDATE version SET number = {};"
                       "COMMIT; SELECT pg_advisory_unlock({})",
                       migrations.size(),
                       setup.fold_lock);
  return connection.execute(opening, steps, postgres_migration_deadline);
}

} // namespace

result<std::string> find_schema_name(postgres_connection& connection) {
  connection.queue(find_settings);
  auto answers = connection.run(opening, postgres_deadline);
  if (!answers)
    return answers.error();
  const auto& settings = answers->front();
  if (settings.text(0, 2) != "UTF8")
    return error(errc::store_failed,
                 fmt::format("{}: its encoding is {}, and must be UTF8",
                             opening,
                             settings.text(0, 2)));
  if (settings.number(0, 3) < 120'000)
    return error(
      errc::store_failed,
      fmt::format("{}: the server is older than PostgreSQL 12", opening));
  // The source is "client" if the URL sets it.
  if (settings.text(0, 1) != "client")
    return std::string("troupe");
  auto named = first_schema(settings.text(0, 0));
  if (named.empty())
    return error(errc::invalid_argument,
                 "the search_path in the store's URL names no schema");
  return named;
}

// FNV-1a.
std::int64_t schema_lock(std::string_view purpose, std::string_view schema) {
  std::uint64_t hash = 14'695'981'039'346'656'037U;
  for (const auto part : {std::string_view("troupe/"), purpose, schema})
    for (const auto byte : part)
      hash = (hash ^ static_cast<unsigned char>(byte)) * 1'099'511'628'211U;
  return static_cast<std::int64_t>(hash);
}

result<postgres_setup> prepare_schema(postgres_connection& connection,
                                      const store_options& options) {
  auto schema = find_schema_name(connection);
  if (!schema)
    return schema.error();
  postgres_setup setup;
  setup.schema = *std::move(schema);
  setup.is_durable = options.durability == durability::durable;
  setup.read_only = options.read_only;
  setup.commit_lock = schema_lock("commit/", setup.schema);
  setup.fold_lock = schema_lock("fold/", setup.schema);
  if (auto prepared = prepare_session(connection, setup); !prepared)
    return prepared.error();
  const auto version = version_of(connection, setup);
  if (!version)
    return version.error();
  if (*version < migrations.size() && setup.read_only)
    return error(
      errc::store_failed,
      *version == 0
        ? fmt::format(
          "{}: its schema {} has no tables of troupe", opening, setup.schema)
        : fmt::format(
          "{}: its schema {} has version {}, and a read-only store does not "
          "migrate it to version {}: open it once for writing",
          opening,
          setup.schema,
          *version,
          migrations.size()));
  if (*version < migrations.size())
    if (auto migrated = migrate(connection, setup); !migrated)
      return migrated.error();
  return setup;
}

result<void> prepare_session(postgres_connection& connection,
                             const postgres_setup& setup) {
  connection.queue(
    prepare_settings,
    postgres_parameters()
      .add(setup.schema)
      .add(std::int64_t{setup.is_durable ? 1 : 0})
      .add(std::int64_t{std::chrono::milliseconds(postgres_deadline).count()})
      .add(std::int64_t{std::chrono::milliseconds(postgres_deadline).count()})
      .add(std::int64_t{setup.read_only ? 1 : 0}));
  auto answers = connection.run(opening, postgres_deadline);
  if (!answers)
    return answers.error();
  const auto& row = answers->front();
  if (!setup.read_only && row.text(0, row.columns() - 1) == "t")
    return error(errc::store_failed,
                 fmt::format("{}: the server is a standby, which may lag and "
                             "cannot be written to",
                             opening));
  return {};
}

} // namespace troupe
