#include "troupe/stores/sqlite/schema.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace troupe {

namespace {

// docs/storage.md describes the columns. A commit appends to `log` only, the
// fastest way to write. The three tables that are looked up by scope are
// written in batches sorted by scope.
constexpr std::string_view tables = R"sql(
CREATE TABLE meta(
  name TEXT PRIMARY KEY NOT NULL,
  value INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE scopes(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  app TEXT NOT NULL,
  user TEXT NOT NULL,
  session TEXT NOT NULL,
  revision INTEGER NOT NULL,
  updated INTEGER NOT NULL,
  UNIQUE(app, user, session)
);
CREATE TABLE log(
  id INTEGER PRIMARY KEY,
  kind INTEGER NOT NULL,
  session INTEGER,
  user INTEGER,
  app INTEGER,
  session_revision INTEGER,
  user_revision INTEGER,
  app_revision INTEGER,
  time INTEGER NOT NULL,
  event TEXT,
  delta TEXT,
  body TEXT
);
CREATE TABLE state(
  scope INTEGER NOT NULL,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY(scope, key)
) WITHOUT ROWID;
CREATE TABLE entries(
  scope INTEGER NOT NULL,
  number INTEGER NOT NULL,
  log INTEGER NOT NULL,
  id_hash INTEGER,
  PRIMARY KEY(scope, number)
) WITHOUT ROWID;
CREATE TABLE removals(
  log INTEGER PRIMARY KEY,
  app TEXT NOT NULL,
  user TEXT NOT NULL,
  session TEXT NOT NULL
);
CREATE TABLE purges(
  scope INTEGER PRIMARY KEY,
  log INTEGER NOT NULL
);
INSERT INTO meta VALUES('folded', 0);
)sql";

// Statements that migrate a file of version `index + 1` to the next one. A new
// file starts at version 1 and takes all steps.
constexpr std::array<std::string_view, sqlite_schema_version - 1> steps = {
  R"sql(
CREATE TABLE fresh_entries(
  scope INTEGER NOT NULL,
  number INTEGER NOT NULL,
  log INTEGER NOT NULL,
  id_hash INTEGER,
  PRIMARY KEY(scope, number)
) WITHOUT ROWID;
INSERT INTO meta SELECT 'settled', value FROM meta WHERE name='folded';
-- So that a program of the old layout that has the file open fails.
ALTER TABLE entries RENAME TO settled_entries;
)sql",
  R"sql(
-- So that a program of the old layout that has the file open fails, in its
-- commits and when it closes.
ALTER TABLE meta RENAME TO progress;
ALTER TABLE progress ADD COLUMN sum INTEGER;
ALTER TABLE scopes ADD COLUMN keys INTEGER;
ALTER TABLE scopes ADD COLUMN sum INTEGER;
ALTER TABLE state ADD COLUMN sum INTEGER;
ALTER TABLE log ADD COLUMN head_sum INTEGER;
ALTER TABLE log ADD COLUMN body_sum INTEGER;
ALTER TABLE settled_entries ADD COLUMN sum INTEGER;
ALTER TABLE fresh_entries ADD COLUMN sum INTEGER;
UPDATE progress SET sum=row_sum(name,value);
UPDATE settled_entries SET sum=row_sum(scope,number,log,id_hash);
UPDATE fresh_entries SET sum=row_sum(scope,number,log,id_hash);
UPDATE scopes SET keys=(SELECT count(*) FROM state WHERE scope=scopes.id);
UPDATE scopes SET sum=row_sum(app,user,session,revision,updated,keys);
UPDATE state SET sum=row_sum(scope,key,value);
UPDATE log SET head_sum=row_sum(id,kind,session,user,app,session_revision,
  user_revision,app_revision,time,event,delta), body_sum=row_sum(id,body);
)sql",
  R"sql(
-- So that a program of the old layout that has the file open fails: it reads
-- this table after each change of another process, before it writes.
ALTER TABLE progress RENAME TO folding;
ALTER TABLE log ADD COLUMN mark INTEGER;
UPDATE log SET mark=random() WHERE id=(SELECT max(id) FROM log);
-- In blocks of 65,536 events, so that new ids of a long session go to few pages.
CREATE INDEX settled_ids ON settled_entries(scope, number >> 16, id_hash)
  WHERE id_hash IS NOT NULL;
CREATE INDEX sessions_of_app ON scopes(app, updated DESC, user, session)
  WHERE session<>'';
CREATE INDEX sessions_of_user ON scopes(app, user, updated DESC, session)
  WHERE session<>'';
)sql",
  R"sql(
-- The new name makes a program of the old layout that has the file open fail.
-- It would fold without snapshots, and would leave those of removed sessions.
ALTER TABLE folding RENAME TO folded_rows;
CREATE TABLE snapshots(
  scope INTEGER NOT NULL,
  revision INTEGER NOT NULL,
  updated INTEGER NOT NULL,
  keys TEXT NOT NULL,
  sum INTEGER NOT NULL,
  PRIMARY KEY(scope, revision)
) WITHOUT ROWID;
)sql",
  R"sql(
-- The new name makes a program of the old layout that has the file open fail.
-- It would delete events that forks share.
ALTER TABLE folded_rows RENAME TO fold_progress;
CREATE TABLE pasts(
  scope INTEGER PRIMARY KEY,
  past INTEGER NOT NULL,
  revision INTEGER NOT NULL,
  sum INTEGER NOT NULL
);
CREATE INDEX uses_of_pasts ON pasts(past, revision);
)sql",
  R"sql(
-- The new name makes a program of the old layout that has the file open fail.
-- It would fold without the entries of apps and users.
ALTER TABLE fold_progress RENAME TO fold_position;
CREATE TABLE shared_entries(
  scope INTEGER NOT NULL,
  log INTEGER NOT NULL,
  number INTEGER NOT NULL,
  logs TEXT NOT NULL,
  sum INTEGER NOT NULL,
  PRIMARY KEY(scope, log)
) WITHOUT ROWID;
)sql",
  R"sql(
-- The new name makes a program of the old layout that has the file open fail.
-- It would take trimmed sessions for damaged ones.
ALTER TABLE fold_position RENAME TO fold_marks;
CREATE TABLE first_states(
  scope INTEGER PRIMARY KEY,
  revision INTEGER NOT NULL,
  updated INTEGER NOT NULL,
  delta TEXT NOT NULL,
  sum INTEGER NOT NULL
);
)sql",
  R"sql(
-- The new name makes a program of the old layout that has the file open fail.
-- It would leave the open runs of removed sessions.
ALTER TABLE fold_marks RENAME TO fold_places;
CREATE TABLE open_runs(
  scope INTEGER NOT NULL,
  invocation TEXT NOT NULL,
  agent TEXT NOT NULL,
  holder TEXT NOT NULL,
  opened INTEGER NOT NULL,
  sum INTEGER NOT NULL,
  PRIMARY KEY(scope, invocation)
) WITHOUT ROWID;
CREATE INDEX open_runs_by_age ON open_runs(opened, invocation);
CREATE INDEX open_runs_of_holder ON open_runs(holder);
CREATE TABLE run_holders(
  id TEXT PRIMARY KEY NOT NULL,
  renewed INTEGER NOT NULL,
  sum INTEGER NOT NULL
) WITHOUT ROWID;
)sql",
};

error damaged(const sqlite_settings& settings, std::string_view why) {
  return {errc::corrupt,
          fmt::format("open {}: {}", settings.file.string(), why)};
}

sqlite_contents inspect(const sqlite_database& database,
                        const sqlite_settings& settings) {
  // With another encoding keys would compare differently and none would be
  // found.
  auto encoding = database.prepare("PRAGMA encoding");
  if (auto named = encoding.rows(); !named.next() || named.text(0) != "UTF-8")
    throw damaged(settings, "its text is not UTF-8");
  const auto owner = database.number("PRAGMA application_id");
  const auto version = database.number("PRAGMA user_version");
  if (owner == 0 && version == 0
      && database.number("SELECT count(*) FROM sqlite_schema") == 0)
    return sqlite_contents::none;
  if (owner != sqlite_application_id)
    throw damaged(settings, "a SQLite database of another program");
  if (version > sqlite_schema_version)
    throw damaged(settings,
                  fmt::format("written by a newer version of troupe (layout "
                              "{}, this one reads up to {})",
                              version,
                              sqlite_schema_version));
  return sqlite_contents::ours;
}

// Migrates the tables from `version` to the newest.
void take_steps(const sqlite_database& database, std::int64_t version) {
  for (auto next = static_cast<std::size_t>(version - 1); next < steps.size();
       ++next)
    database.execute(std::string(steps[next]));
  database.execute(
    fmt::format("PRAGMA user_version={}", sqlite_schema_version));
}

void make_tables(const sqlite_database& database,
                 const sqlite_settings& settings) {
  // Another process may be making the tables too, so the decision is taken
  // inside the transaction.
  sqlite_transaction writing(database, sqlite_transaction::kind::write);
  if (inspect(database, settings) == sqlite_contents::ours)
    return;
  database.execute(std::string(tables));
  database.execute(
    fmt::format("PRAGMA application_id={}", sqlite_application_id));
  take_steps(database, 1);
  writing.commit();
}

// Migrates a file of an older version, all or nothing.
void migrate(const sqlite_database& database, const sqlite_settings& settings) {
  sqlite_transaction writing(database, sqlite_transaction::kind::write);
  // Another process may have migrated it, or may be a newer version itself.
  inspect(database, settings);
  const auto version = database.number("PRAGMA user_version");
  if (version < 1)
    throw damaged(settings, "its layout has no version");
  take_steps(database, version);
  writing.commit();
}

// Several processes may switch a new file to a write-ahead log at the same
// time.
void use_write_ahead_log(const sqlite_database& database,
                         const sqlite_settings& settings) {
  const bool is_free = database.retry_while_locked([&] {
    auto statement = database.prepare("PRAGMA journal_mode=WAL");
    if (auto mode = statement.rows(); !mode.next() || mode.text(0) != "wal")
      throw error(errc::store_failed,
                  fmt::format("open {}: SQLite keeps no write-ahead log for it",
                              settings.file.string()));
  });
  if (!is_free)
    throw error(errc::store_failed,
                fmt::format("open {}: locked by another process",
                            settings.file.string()));
}

// Removes the `-wal` and `-shm` files of a file that was removed alone. Another
// program may still have the index open, and a new file must not share it. The
// lock makes programs that create the file at the same time take turns;
// otherwise one would remove the index of the new file.
void remove_orphaned_log(const std::string& file) {
  const auto index = file + "-shm";
  const int held = ::open(index.c_str(), O_RDONLY | O_CLOEXEC);
  if (held < 0)
    return;

  struct stat orphan {};

  struct stat present {};

  if (::flock(held, LOCK_EX) == 0 && ::fstat(held, &orphan) == 0
      && ::lstat(file.c_str(), &present) != 0 && errno == ENOENT
      && ::stat(index.c_str(), &present) == 0 && present.st_dev == orphan.st_dev
      && present.st_ino == orphan.st_ino) {
    ::unlink((file + "-wal").c_str());
    ::unlink(index.c_str());
  }
  ::close(held);
}

// Creates the file before SQLite does, which would let everybody read it.
// `mknod` does not open the file: closing it again would drop the locks that
// other connections of this process have on it.
void make_file(const sqlite_settings& settings) {
  remove_orphaned_log(settings.file.string());
  if (::mknod(settings.file.c_str(), S_IFREG | S_IRUSR | S_IWUSR, 0) != 0
      && errno != EEXIST)
    throw error(errc::store_failed,
                fmt::format("make {}: {}",
                            settings.file.string(),
                            std::generic_category().message(errno)));
}

} // namespace

sqlite_contents inspect_sqlite_file(const sqlite_settings& settings) {
  namespace fs = std::filesystem;
  std::error_code failed;
  const auto status = fs::status(settings.file, failed);
  if (status.type() == fs::file_type::not_found) {
    const auto parent = settings.file.parent_path();
    if (!parent.empty() && !fs::is_directory(parent, failed))
      throw error(errc::store_failed,
                  fmt::format("open {}: there is no folder {}",
                              settings.file.string(),
                              parent.string()));
    return sqlite_contents::none;
  }
  if (failed || !fs::is_regular_file(status))
    throw error(errc::store_failed,
                fmt::format("open {}: {}",
                            settings.file.string(),
                            failed ? failed.message() : "it is not a file"));
  if (fs::file_size(settings.file, failed) == 0)
    return sqlite_contents::none;
  // Another process may be making the file; a transaction shows one state of
  // it.
  const sqlite_database database(settings, sqlite_role::reader);
  sqlite_transaction reading(database, sqlite_transaction::kind::read);
  return inspect(database, settings);
}

void expect_newest_layout(const sqlite_settings& settings) {
  const auto version = sqlite_database(settings, sqlite_role::reader)
                         .number("PRAGMA user_version");
  if (version < sqlite_schema_version)
    throw error(
      errc::store_failed,
      fmt::format("open {}: its layout is {}, and a read-only store needs "
                  "layout {}; open it once for writing to migrate it",
                  settings.file.string(),
                  version,
                  sqlite_schema_version));
}

void bring_forward(const sqlite_settings& settings) {
  if (sqlite_database(settings, sqlite_role::reader)
        .number("PRAGMA user_version")
      < sqlite_schema_version)
    open_sqlite_writer(settings);
}

sqlite_database open_sqlite_writer(const sqlite_settings& settings) {
  const auto contents = inspect_sqlite_file(settings);
  if (contents == sqlite_contents::none)
    make_file(settings);
  sqlite_database database(settings, sqlite_role::writer);
  use_write_ahead_log(database, settings);
  if (contents == sqlite_contents::none)
    make_tables(database, settings);
  if (database.number("PRAGMA user_version") < sqlite_schema_version)
    migrate(database, settings);
  return database;
}

} // namespace troupe
