#include "naive_sqlite.hpp"

#include <sqlite3.h>

namespace bench {

namespace {

void bind_text(sqlite3_stmt* to, int index, const std::string& text) {
  sqlite3_bind_text(
    to, index, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
}

} // namespace

naive_sqlite::naive_sqlite(const std::filesystem::path& file) {
  if (sqlite3_open(file.c_str(), &database_) != SQLITE_OK)
    throw troupe::error(troupe::errc::store_failed, "open the naive store");
  run("PRAGMA journal_mode=WAL");
  run("PRAGMA synchronous=FULL");
  run("CREATE TABLE states (owner TEXT PRIMARY KEY, state TEXT NOT NULL)");
  run("CREATE TABLE events (id TEXT, session TEXT, time REAL, body TEXT, "
      "PRIMARY KEY (id, session))");
  load_ = prepare("SELECT state FROM states WHERE owner = ?");
  save_ = prepare("INSERT OR REPLACE INTO states VALUES (?, ?)");
  insert_ = prepare("INSERT INTO events VALUES (?, ?, ?, ?)");
}

naive_sqlite::~naive_sqlite() {
  for (auto* each : {load_, save_, insert_})
    sqlite3_finalize(each);
  sqlite3_close(database_);
}

void naive_sqlite::run(const char* sql) {
  if (sqlite3_exec(database_, sql, nullptr, nullptr, nullptr) != SQLITE_OK)
    throw troupe::error(troupe::errc::store_failed, sqlite3_errmsg(database_));
}

sqlite3_stmt* naive_sqlite::prepare(const char* sql) {
  sqlite3_stmt* made = nullptr;
  if (sqlite3_prepare_v2(database_, sql, -1, &made, nullptr) != SQLITE_OK)
    throw troupe::error(troupe::errc::store_failed, sqlite3_errmsg(database_));
  return made;
}

void naive_sqlite::update(const std::string& owner,
                          std::span<const troupe::operation> share) {
  if (share.empty())
    return;
  auto state = troupe::json::object();
  bind_text(load_, 1, owner);
  if (sqlite3_step(load_) == SQLITE_ROW)
    state = troupe::json::parse(
      reinterpret_cast<const char*>(sqlite3_column_text(load_, 0)));
  sqlite3_reset(load_);
  for (const auto& done : share)
    state[done.name] = done.operand.data();
  bind_text(save_, 1, owner);
  bind_text(save_, 2, state.dump());
  if (sqlite3_step(save_) != SQLITE_DONE)
    throw troupe::error(troupe::errc::store_failed, sqlite3_errmsg(database_));
  sqlite3_reset(save_);
}

void naive_sqlite::append(const troupe::session_key& key,
                          const troupe::event& said) {
  run("BEGIN IMMEDIATE");
  const auto& changed = said.actions.state_delta;
  update(key.app, changed.share(troupe::scope::app));
  update(key.app + "/" + key.user, changed.share(troupe::scope::user));
  update(to_string(key), changed.share(troupe::scope::session));
  bind_text(insert_, 1, said.id);
  bind_text(insert_, 2, to_string(key));
  sqlite3_bind_double(insert_, 3, troupe::to_seconds(said.timestamp));
  bind_text(insert_, 4, to_json(said).dump());
  if (sqlite3_step(insert_) != SQLITE_DONE)
    throw troupe::error(troupe::errc::store_failed, sqlite3_errmsg(database_));
  sqlite3_reset(insert_);
  run("COMMIT");
}

} // namespace bench
