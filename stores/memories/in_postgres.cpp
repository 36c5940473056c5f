#include "troupe/stores/memories/in_postgres.hpp"

#include "troupe/stores/memories/form.hpp"
#include "troupe/stores/memory_words.hpp"
#include "troupe/stores/postgres/pool.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

// Invariant: a transaction that adds or removes memories of a user holds the
// lock of the user's row. So a memory that is added while the user is removed
// is removed with it, or is added after it.

namespace {

namespace transaction = postgres_transaction;

constexpr std::string_view opening_memories = "open the memory's database";

// The words of a memory are made by `memory_words`. One more word names the
// user (`@17`), so that the index finds the rows of one user.
constexpr const char* memory_version_1 = R"(
CREATE TABLE memory_users (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  app text COLLATE "C" NOT NULL,
  usr text COLLATE "C" NOT NULL,
  UNIQUE (app, usr)
);
CREATE TABLE memories (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  owner bigint NOT NULL REFERENCES memory_users ON DELETE CASCADE,
  session text COLLATE "C" NOT NULL,
  event text COLLATE "C" NOT NULL,
  time bigint NOT NULL,
  body text NOT NULL,
  words tsvector NOT NULL,
  UNIQUE (owner, session, event)
);
CREATE INDEX memories_words ON memories USING gin (words)
  WITH (fastupdate = off);
)";

// Migrations of the tables, one per version. Never edit a released one; add a
// new one.
constexpr std::array<const char*, 1> memory_migrations = {memory_version_1};

constexpr postgres_statement find_tables
  = {"memory_find_tables",
     "SELECT quote_ident($1::text),"
     " to_regnamespace(quote_ident($1::text)) IS NOT NULL,"
     " to_regclass(quote_ident($1::text) || '.memory_version') IS NOT NULL"};

constexpr postgres_statement find_memory_version
  = {"memory_find_version", "SELECT number FROM memory_version"};

// Locks the row also if it is there already.
constexpr postgres_statement make_user
  = {"memory_make_user",
     "INSERT INTO memory_users (app, usr) VALUES ($1::text, $2::text)"
     " ON CONFLICT (app, usr) DO UPDATE SET usr = excluded.usr RETURNING id"};

// Locks the rows of a user, or of all users of an app.
constexpr postgres_statement lock_users
  = {"memory_lock_users",
     "SELECT id FROM memory_users WHERE app = $1::text"
     " AND ($2::text = '' OR usr = $2::text) ORDER BY id FOR UPDATE"};

constexpr postgres_statement count_memories
  = {"memory_count",
     "SELECT count(*) FROM memories"
     " WHERE owner = ANY ($1::bigint[])"};

// Deletes the memories, too.
constexpr postgres_statement delete_users
  = {"memory_delete_users",
     "DELETE FROM memory_users WHERE id = ANY ($1::bigint[])"};

constexpr postgres_statement delete_empty_users
  = {"memory_delete_empty_users",
     "DELETE FROM memory_users WHERE id = ANY ($1::bigint[]) AND NOT EXISTS"
     " (SELECT FROM memories WHERE owner = memory_users.id)"};

constexpr postgres_statement delete_session
  = {"memory_delete_session",
     "WITH gone AS (DELETE FROM memories WHERE owner = $1::bigint"
     " AND session = $2::text RETURNING 1) SELECT count(*) FROM gone"};

constexpr postgres_statement delete_some
  = {"memory_delete_some",
     "WITH gone AS (DELETE FROM memories WHERE owner = $1::bigint"
     " AND session = $2::text AND event = ANY ($3::text[]) RETURNING 1)"
     " SELECT count(*) FROM gone"};

constexpr postgres_statement add_memory
  = {"memory_add",
     "WITH added AS (INSERT INTO memories"
     " (owner, session, event, time, body, words) VALUES ($1::bigint,"
     " $2::text, $3::text, $4::bigint, $5::text, array_to_tsvector($6::text[]))"
     " ON CONFLICT (owner, session, event) DO NOTHING RETURNING 1)"
     " SELECT count(*) FROM added"};

constexpr postgres_statement find_user
  = {"memory_find_user",
     "SELECT id, (SELECT count(*) FROM memories WHERE owner = memory_users.id)"
     " FROM memory_users WHERE app = $1::text AND usr = $2::text"};

constexpr postgres_statement count_words
  = {"memory_count_words",
     "SELECT wanted.place, count(*)"
     " FROM unnest($1::text[]) WITH ORDINALITY AS wanted (query, place)"
     " JOIN memories ON memories.words @@ wanted.query::tsquery"
     " GROUP BY wanted.place"};

constexpr postgres_statement find_memories
  = {"memory_find",
     "SELECT session, event, time, body FROM (SELECT memories.id,"
     " sum(wanted.weight) AS score"
     " FROM unnest($1::text[], $2::bigint[]) AS wanted (query, weight)"
     " JOIN memories ON memories.words @@ wanted.query::tsquery"
     " GROUP BY memories.id) AS found JOIN memories USING (id)"
     " ORDER BY found.score DESC, time DESC, id DESC LIMIT $3::bigint"};

std::vector<std::string_view> views_of(const std::vector<std::string>& texts) {
  return {texts.begin(), texts.end()};
}

std::string user_word(std::int64_t user) {
  return fmt::format("@{}", user);
}

// Returns the version of the tables; 0 if there are none.
result<std::size_t> memory_version_of(postgres_connection& connection,
                                      const std::string& schema) {
  connection.queue(find_tables, postgres_parameters().add(schema));
  auto answers = connection.run(opening_memories, postgres_deadline);
  if (!answers)
    return answers.error();
  if (answers->front().text(0, 2) != "t")
    return std::size_t{0};
  connection.queue(find_memory_version);
  answers = connection.run(opening_memories, postgres_deadline);
  if (!answers)
    return answers.error();
  const auto& found = answers->front();
  const auto version = found.size() == 1 ? found.number(0, 0) : 0;
  if (version < 1
      || version > static_cast<std::int64_t>(memory_migrations.size()))
    return error(errc::corrupt,
                 fmt::format("{}: the memory in its schema {} has version {}, "
                             "made by a newer troupe; this one knows up to {}",
                             opening_memories,
                             schema,
                             version,
                             memory_migrations.size()));
  return static_cast<std::size_t>(version);
}

result<void> migrate_memories(postgres_connection& connection,
                              const std::string& schema) {
  // Locks outside the transaction, which would not see tables that were made
  // meanwhile. A session store that makes the same schema has the same lock.
  const auto lock = schema_lock("fold/", schema);
  if (auto locked = connection.execute(
        opening_memories,
        fmt::format("SET statement_timeout = 0; SELECT pg_advisory_lock({})",
                    lock),
        postgres_migration_deadline);
      !locked)
    return locked;
  // Another process may have made the tables meanwhile.
  const auto version = memory_version_of(connection, schema);
  if (!version)
    return version.error();
  std::string steps = "BEGIN;";
  if (*version == 0) {
    connection.queue(find_tables, postgres_parameters().add(schema));
    const auto answers = connection.run(opening_memories, postgres_deadline);
    if (!answers)
      return answers.error();
    if (answers->front().text(0, 1) != "t")
      steps += fmt::format("CREATE SCHEMA {};", answers->front().text(0, 0));
    steps += "CREATE TABLE memory_version (number integer NOT NULL);"
             "INSERT INTO memory_version VALUES (0);";
  }
  for (auto next = *version; next < memory_migrations.size(); ++next)
    steps += memory_migrations[next];
  steps += fmt::format("UPDATE memory_version SET number = {};"
                       "COMMIT; SELECT pg_advisory_unlock({})",
                       memory_migrations.size(),
                       lock);
  return connection.execute(
    opening_memories, steps, postgres_migration_deadline);
}

result<postgres_setup> prepare_memories(postgres_connection& connection) {
  auto schema = find_schema_name(connection);
  if (!schema)
    return schema.error();
  postgres_setup setup;
  setup.schema = *std::move(schema);
  if (auto prepared = prepare_session(connection, setup); !prepared)
    return prepared.error();
  const auto version = memory_version_of(connection, setup.schema);
  if (!version)
    return version.error();
  if (*version < memory_migrations.size())
    if (auto migrated = migrate_memories(connection, setup.schema); !migrated)
      return migrated.error();
  return setup;
}

class postgres_memories final : public memory_service {
public:
  postgres_memories(const std::string& url, postgres_setup setup)
    : pool_(url, std::move(setup)) {}

protected:
  result<std::vector<std::string>>
  do_add(const owner_name& of,
         const std::vector<memory_entry>& entries,
         earlier before) override {
    // A failure in making these leaves no transaction open.
    std::vector<stored_memory> made;
    made.reserve(entries.size());
    for (const auto& each : entries)
      made.push_back(
        {&each, memory_body(each), memory_words(memory_text(each.content))});
    std::vector<bool> is_new(made.size());
    const auto done = pool_.with([&](postgres_connection& connection) {
      return made.empty() ? remove_replaced(connection, of, before)
                          : add(connection, of, made, before, is_new);
    });
    if (!done)
      return done.error();
    std::vector<std::string> added;
    for (std::size_t index = 0; index < made.size(); ++index)
      if (is_new[index])
        added.push_back(made[index].entry->id);
    return added;
  }

  result<std::vector<memory_entry>>
  do_search(const owner_name& user,
            const std::vector<std::string>& words,
            std::size_t limit) override {
    return pool_.with([&](postgres_connection& connection) {
      return search_in(connection, user, words, limit);
    });
  }

  result<std::size_t> do_remove(const owner_name& of,
                                const std::vector<std::string>& ids) override {
    return pool_.with([&](postgres_connection& connection) {
      return remove_rows(connection, of, &ids);
    });
  }

  result<bool> do_remove_all(const owner_name& of) override {
    return pool_.with([&](postgres_connection& connection) -> result<bool> {
      if (of.where() != scope::session)
        return remove_users(connection, of);
      const auto count = remove_rows(connection, of, nullptr);
      if (!count)
        return count.error();
      return *count > 0;
    });
  }

private:
  static constexpr std::string_view adding = "add to memory";
  static constexpr std::string_view searching = "search in memory";
  static constexpr std::string_view removing = "remove from memory";

  struct stored_memory {
    const memory_entry* entry;
    std::string body;
    std::vector<std::string> words;
  };

  // Adds at least one memory, and sets `is_new` of those that were not there.
  // Runs again if the connection was lost: then a memory also counts as new if
  // the first run has added it, whose commit may have been done.
  static result<void> add(postgres_connection& connection,
                          const owner_name& of,
                          const std::vector<stored_memory>& made,
                          earlier before,
                          std::vector<bool>& is_new) {
    connection.queue(transaction::begin);
    connection.queue(make_user, postgres_parameters().add(of.app).add(of.user));
    const auto locked = connection.run(adding, postgres_deadline);
    if (!locked)
      return locked.error();
    const auto user = locked->back().number(0, 0);
    if (before == earlier::replaced)
      connection.queue(delete_session,
                       postgres_parameters().add(user).add(of.session));
    for (const auto& each : made)
      queue_add(connection, user, each);
    const auto answers = connection.run(adding, postgres_long_deadline);
    if (!answers)
      return answers.error();
    const std::size_t first = before == earlier::replaced ? 1 : 0;
    for (std::size_t index = 0; index < made.size(); ++index)
      if ((*answers)[first + index].number(0, 0) > 0)
        is_new[index] = true;
    connection.queue(transaction::commit);
    const auto done = connection.run(adding, postgres_long_deadline);
    if (!done)
      return done.error();
    return {};
  }

  // Replaces memories by none, without a row of the user.
  static result<void> remove_replaced(postgres_connection& connection,
                                      const owner_name& of,
                                      earlier before) {
    if (before != earlier::replaced)
      return {};
    const auto removed = remove_rows(connection, of, nullptr);
    if (!removed)
      return removed.error();
    return {};
  }

  static void queue_add(postgres_connection& connection,
                        std::int64_t user,
                        const stored_memory& made) {
    const auto own = user_word(user);
    auto all = views_of(made.words);
    all.push_back(own);
    const auto& entry = *made.entry;
    connection.queue(
      add_memory,
      postgres_parameters()
        .add(user)
        .add(entry.session)
        .add(entry.id)
        .add(std::int64_t{entry.timestamp.time_since_epoch().count()})
        .add(made.body)
        .add(std::span<const std::string_view>(all)));
  }

  static result<std::vector<memory_entry>>
  search_in(postgres_connection& connection,
            const owner_name& of,
            const std::vector<std::string>& words,
            std::size_t limit) {
    connection.queue(find_user, postgres_parameters().add(of.app).add(of.user));
    const auto known = connection.run(searching, postgres_deadline);
    if (!known)
      return known.error();
    const auto& user = known->front();
    if (user.size() == 0)
      return std::vector<memory_entry>();
    // Words have no quotes and no backslashes, so they need no escape.
    std::vector<std::string> queries;
    queries.reserve(words.size());
    for (const auto& word : words)
      queries.push_back(
        fmt::format("'{}' & '{}'", user_word(user.number(0, 0)), word));
    const auto wanted = views_of(queries);
    const std::span<const std::string_view> all(wanted);
    connection.queue(count_words, postgres_parameters().add(all));
    const auto counted = connection.run(searching, postgres_deadline);
    if (!counted)
      return counted.error();
    std::vector<std::int64_t> weights(words.size(), 1);
    const auto& counts = counted->front();
    for (int row = 0; row < counts.size(); ++row)
      weights[static_cast<std::size_t>(counts.number(row, 0) - 1)]
        = word_weight(static_cast<std::uint64_t>(user.number(0, 1)),
                      static_cast<std::uint64_t>(counts.number(row, 1)));
    connection.queue(find_memories,
                     postgres_parameters()
                       .add(all)
                       .add(std::span<const std::int64_t>(weights))
                       .add_limit(limit));
    const auto found = connection.run(searching, postgres_deadline);
    if (!found)
      return found.error();
    return read(found->front());
  }

  static result<std::vector<memory_entry>> read(const postgres_rows& rows) {
    std::vector<memory_entry> entries;
    for (int row = 0; row < rows.size(); ++row) {
      auto& added = entries.emplace_back();
      added.session = rows.text(row, 0);
      added.id = rows.text(row, 1);
      added.timestamp = rows.time(row, 2);
      if (auto body = read_memory_body(added, rows.text(row, 3)); !body)
        return body.error();
    }
    return entries;
  }

  // Begins a transaction and locks the users.
  static result<std::vector<std::int64_t>> lock(postgres_connection& connection,
                                                const owner_name& of) {
    connection.queue(transaction::begin);
    connection.queue(lock_users,
                     postgres_parameters().add(of.app).add(of.user));
    const auto locked = connection.run(removing, postgres_deadline);
    if (!locked)
      return locked.error();
    std::vector<std::int64_t> users;
    const auto& rows = locked->back();
    users.reserve(static_cast<std::size_t>(rows.size()));
    for (int row = 0; row < rows.size(); ++row)
      users.push_back(rows.number(row, 0));
    return users;
  }

  // Removes the memories of a session, or those of the ids.
  static result<std::size_t> remove_rows(postgres_connection& connection,
                                         const owner_name& of,
                                         const std::vector<std::string>* ids) {
    const auto users = lock(connection, of);
    if (!users)
      return users.error();
    for (const auto user : *users) {
      auto place = postgres_parameters().add(user).add(of.session);
      if (ids != nullptr) {
        const auto all = views_of(*ids);
        connection.queue(delete_some,
                         place.add(std::span<const std::string_view>(all)));
      } else {
        connection.queue(delete_session, place);
      }
    }
    connection.queue(
      delete_empty_users,
      postgres_parameters().add(std::span<const std::int64_t>(*users)));
    connection.queue(transaction::commit);
    const auto done = connection.run(removing, postgres_long_deadline);
    if (!done)
      return done.error();
    return users->empty()
             ? std::size_t{0}
             : static_cast<std::size_t>(done->front().number(0, 0));
  }

  static result<bool> remove_users(postgres_connection& connection,
                                   const owner_name& of) {
    const auto users = lock(connection, of);
    if (!users)
      return users.error();
    const std::span<const std::int64_t> all(*users);
    connection.queue(count_memories, postgres_parameters().add(all));
    connection.queue(delete_users, postgres_parameters().add(all));
    connection.queue(transaction::commit);
    const auto done = connection.run(removing, postgres_long_deadline);
    if (!done)
      return done.error();
    return done->front().number(0, 0) > 0;
  }

  postgres_pool pool_;
};

} // namespace

result<std::unique_ptr<memory_service>>
open_postgres_memories(const std::string& url) {
  const auto connection = postgres_connection::open(url);
  if (!connection)
    return connection.error();
  auto setup = prepare_memories(**connection);
  if (!setup)
    return setup.error();
  return std::make_unique<postgres_memories>(url, *std::move(setup));
}

} // namespace troupe
