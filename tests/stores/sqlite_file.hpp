// The file of a SQLite store, for tests that write, inspect and change it.

#pragma once

#include "troupe/stores/sqlite/open.hpp"
#include "troupe/stores/sqlite/sums.hpp"

#include "../outcome.hpp"
#include "temporary_folder.hpp"
#include <boost/test/unit_test.hpp>
#include <sqlite3.h>

#include <array>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace troupe::testing {

inline event_ptr make_event(const std::string& id, const json& state_delta) {
  event said(content("model", {part("said " + id)}));
  said.id = id;
  said.author = "agent";
  said.timestamp = timestamp(std::chrono::microseconds(1'700'000'000'123'457));
  said.actions.state_delta = delta::from_json(state_delta).value();
  return std::make_shared<const event>(std::move(said));
}

inline store_change creation(const session_key& key) {
  store_change made;
  made.kind = change_kind::create;
  made.owner = {key.app, key.user, key.id};
  made.event = make_event("", json::object());
  made.session_revision = 0;
  return made;
}

inline const session_key ann{"press", "ann", "s1"};

// One process that counts in its session, a user and the app, on top of the
// state that it loads.
class counter {
public:
  counter(store& on, session_key key) : store_(on), key_(std::move(key)) {}

  void create() { store_.commit(std::array{creation(key_)}).value(); }

  // Adds 1 in all scopes; retries when another process was faster.
  void add(const std::string& id) {
    for (;;) {
      const auto session = store_.load_session(key_, {}).value().value();
      const auto user = store_.load_scope({key_.app, key_.user}).value();
      const auto app = store_.load_scope({key_.app}).value();
      store_change change;
      change.owner = {key_.app, key_.user, key_.id};
      change.event = make_event(id,
                                {{"n", count(session.scope.keys) + 1},
                                 {"user:n", count(user->keys) + 1},
                                 {"app:n", count(app->keys) + 1}});
      change.session_revision = session.scope.revision + 1;
      change.user_revision = user->revision + 1;
      change.app_revision = app->revision + 1;
      if (store_.commit(std::array{change}).value().moved.empty())
        return;
    }
  }

  static std::int64_t count(const state_map& keys) {
    const auto* found = keys.find("n");
    return found == nullptr ? 0 : found->data().get<std::int64_t>();
  }

private:
  store& store_; // Owned by the caller.
  session_key key_;
};

inline std::string ids_of(const std::vector<event_ptr>& events) {
  std::string ids;
  for (const auto& said : events)
    ids += said->id + " ";
  return ids;
}

struct sqlite_file {
  temporary_folder folder;
  std::filesystem::path file = folder.path() / "s.db";

  std::unique_ptr<store> open(std::int64_t fold_rows = 16'384) const {
    return detail::open_sqlite_store({.file = file, .fold_rows = fold_rows})
      .value();
  }

  std::string refusal() const {
    const auto opened = open_sqlite_store(file);
    BOOST_TEST(reason_of(opened).find("s.db") != std::string::npos,
               reason_of(opened));
    return code_of(opened);
  }

  void execute(const std::string& sql) const {
    sqlite3* database = nullptr;
    BOOST_REQUIRE(sqlite3_open(file.c_str(), &database) == SQLITE_OK);
    add_row_sum(database);
    char* reason = nullptr;
    sqlite3_exec(database, sql.c_str(), nullptr, nullptr, &reason);
    BOOST_TEST_REQUIRE(reason == nullptr);
    sqlite3_close(database);
  }

  std::int64_t number(const std::string& sql) const {
    sqlite3* database = nullptr;
    BOOST_REQUIRE(sqlite3_open(file.c_str(), &database) == SQLITE_OK);
    sqlite3_stmt* statement = nullptr;
    BOOST_REQUIRE(
      sqlite3_prepare_v2(database, sql.c_str(), -1, &statement, nullptr)
      == SQLITE_OK);
    BOOST_REQUIRE(sqlite3_step(statement) == SQLITE_ROW);
    const auto found = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(database);
    return found;
  }

  // Stores a session with `count` events, and closes the store.
  void fill(int count) const {
    const auto made
      = open_sqlite_store(file, {.durability = durability::none}).value();
    counter counting(*made, ann);
    counting.create();
    for (int number = 1; number <= count; ++number)
      counting.add("e" + std::to_string(number));
    made->close().value();
  }

  // Puts the file into the layout of an older version.
  void set_back_to(int version) const {
    execute("DROP TABLE open_runs;"
            "DROP TABLE run_holders;"
            "ALTER TABLE fold_places RENAME TO fold_marks");
    if (version < 8)
      execute("DROP TABLE first_states;"
              "ALTER TABLE fold_marks RENAME TO fold_position");
    if (version < 7)
      execute("DROP TABLE shared_entries;"
              "ALTER TABLE fold_position RENAME TO fold_progress");
    if (version < 6)
      execute("DROP TABLE pasts;"
              "ALTER TABLE fold_progress RENAME TO folded_rows");
    if (version < 5)
      execute("DROP TABLE snapshots;"
              "ALTER TABLE folded_rows RENAME TO folding");
    if (version < 4)
      execute("DROP INDEX settled_ids; DROP INDEX sessions_of_app;"
              "DROP INDEX sessions_of_user;"
              "ALTER TABLE log DROP COLUMN mark;"
              "ALTER TABLE folding RENAME TO progress");
    if (version < 3)
      execute("ALTER TABLE progress DROP COLUMN sum;"
              "ALTER TABLE progress RENAME TO meta;"
              "ALTER TABLE settled_entries DROP COLUMN sum;"
              "ALTER TABLE fresh_entries DROP COLUMN sum;"
              "ALTER TABLE scopes DROP COLUMN keys;"
              "ALTER TABLE scopes DROP COLUMN sum;"
              "ALTER TABLE state DROP COLUMN sum;"
              "ALTER TABLE log DROP COLUMN head_sum;"
              "ALTER TABLE log DROP COLUMN body_sum");
    if (version == 1)
      execute(
        "INSERT OR REPLACE INTO settled_entries SELECT * FROM fresh_entries;"
        "DROP TABLE fresh_entries;"
        "ALTER TABLE settled_entries RENAME TO entries;"
        "DELETE FROM meta WHERE name='settled'");
    execute("PRAGMA user_version=" + std::to_string(version));
  }
};

} // namespace troupe::testing
