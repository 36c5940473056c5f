// Tables of an older version, and connected programs of that version.

#include "troupe/stores/postgres/open.hpp"

#include "../outcome.hpp"
#include "counting_client.hpp"
#include "postgres_server.hpp"
#include <boost/test/unit_test.hpp>
#include <fmt/format.h>
#include <libpq-fe.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
using namespace troupe::testing::counted;

BOOST_AUTO_TEST_SUITE(postgres_layout)

namespace {

postgres_server& shared_server() {
  static postgres_server server;
  return server;
}

// The tables as released with version 1.
constexpr auto tables_of_version_1 = R"(
CREATE TABLE version (number integer NOT NULL);
INSERT INTO version VALUES (1);
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
INSERT INTO scopes VALUES (4, 'press', '', '', 0, 0),
  (5, 'press', 'ann', '', 0, 0), (6, 'press', 'ann', 's1', -1, 0);
)";

// The rows that counting clients write; the ids of the scopes are those above.
std::string rows_of_version_1(int first, int last) {
  auto rows = std::string("INSERT INTO log VALUES ");
  for (int row = first; row <= last; ++row)
    rows += row == 1
              ? "(1, 7, 1, 6, 0, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, "
                "NULL)"
              : fmt::format(
                "{}({}, 7, 1, 6, {}, 5, {}, 4, {}, 1, {}, 'old-{}',"
                " '{{\"count\":{},\"user:count\":{},\"app:count\":{}}}',"
                " '{{\"author\":\"ann\"}}')",
                row == first ? "" : ",",
                row,
                row - 1,
                row - 1,
                row - 1,
                id_hash(fmt::format("old-{}", row - 1)),
                row - 1,
                row - 1,
                row - 1,
                row - 1);
  return rows;
}

// A plain connection; each statement returns its error, or nothing.
class raw_connection {
public:
  explicit raw_connection(const std::string& url)
    : connection_(PQconnectdb(url.c_str()), PQfinish) {}

  std::string run(const std::string& statement) {
    return outcome(PQexec(connection_.get(), statement.c_str()));
  }

  std::string copy(const std::string& statement, const std::string& row) {
    const auto begun = run(statement);
    if (!begun.empty())
      return begun;
    PQputCopyData(connection_.get(), row.data(), static_cast<int>(row.size()));
    PQputCopyEnd(connection_.get(), nullptr);
    auto ended = outcome(PQgetResult(connection_.get()));
    while (auto* const rest = PQgetResult(connection_.get()))
      PQclear(rest);
    return ended;
  }

  std::string prepare(const std::string& name, const std::string& statement) {
    return outcome(PQprepare(
      connection_.get(), name.c_str(), statement.c_str(), 0, nullptr));
  }

  std::string run_prepared(const std::string& name) {
    return outcome(PQexecPrepared(
      connection_.get(), name.c_str(), 0, nullptr, nullptr, nullptr, 0));
  }

  // Returns the first value; an error of the statement fails the test.
  std::string value(const std::string& statement) {
    const std::unique_ptr<PGresult, decltype(&PQclear)> answer(
      PQexec(connection_.get(), statement.c_str()), PQclear);
    BOOST_REQUIRE_MESSAGE(PQresultStatus(answer.get()) == PGRES_TUPLES_OK,
                          PQresultErrorMessage(answer.get()));
    return PQgetvalue(answer.get(), 0, 0);
  }

private:
  static std::string outcome(PGresult* answer) {
    const std::unique_ptr<PGresult, decltype(&PQclear)> owned(answer, PQclear);
    return PQresultErrorMessage(answer);
  }

  std::unique_ptr<PGconn, decltype(&PQfinish)> connection_;
};

std::string old_place(int rows) {
  static int count = 0;
  const auto schema = fmt::format("layout_{}", ++count);
  const auto url = shared_server().url(schema);
  raw_connection connection(url);
  BOOST_TEST(connection.run(fmt::format("CREATE SCHEMA {}", schema)) == "");
  BOOST_TEST(connection.run(tables_of_version_1) == "");
  BOOST_TEST(connection.run(rows_of_version_1(1, rows)) == "");
  return url;
}

std::string version_of(const std::string& url) {
  return raw_connection(url).value("SELECT number FROM version");
}

} // namespace

BOOST_AUTO_TEST_CASE(tables_of_version_1_are_brought_forward) {
  const auto url = old_place(5);
  const auto refused = open_postgres_store(url, {.read_only = true});
  BOOST_TEST(reason_of(refused).find("open it once for writing")
               != std::string::npos,
             reason_of(refused));
  BOOST_TEST(version_of(url) == "1");
  const auto target = open_postgres_store(url).value();
  BOOST_TEST(version_of(url) == "5");
  counting_client client(*target);
  for (const auto count : client.counts())
    BOOST_TEST(count == 4);
  const std::array<std::string, 2> ids{"old-2", "new"};
  BOOST_TEST(target->find_events(key, ids).value()[0]->id == "old-2");
  client.count("new").value();
  const auto change = create_session({"press", "ann", "s2"});
  BOOST_TEST(target->commit({&change, 1}).value().moved.empty());
  BOOST_TEST(target->find_events(key, ids).value()[1]->id == "new");
  BOOST_TEST(
    target->list({.app = "press", .user = {}, .behind = {}}).value().size()
    == 2U);
  BOOST_TEST(target->check({}).value().empty());
}

// Version 2 has no forks. Its programs check the version when they find a mark
// that is not theirs.
BOOST_AUTO_TEST_CASE(tables_of_version_2_are_brought_forward) {
  const auto url = old_place(5);
  open_postgres_store(url).value()->close().value();
  raw_connection connection(url);
  BOOST_TEST(connection.run("ALTER TABLE scopes DROP COLUMN past,"
                            " DROP COLUMN past_revision;"
                            "DROP TABLE first_states;"
                            "DROP TABLE open_runs; DROP TABLE run_holders;"
                            "UPDATE version SET number = 2")
             == "");
  const auto before = connection.value("SELECT max(number) FROM marks");
  const auto target = open_postgres_store(url).value();
  BOOST_TEST(version_of(url) == "5");
  BOOST_TEST(std::stoi(connection.value("SELECT max(number) FROM marks"))
             == std::stoi(before) + 3);
  counting_client client(*target);
  for (const auto count : client.counts())
    BOOST_TEST(count == 4);
  auto change = create_session({"press", "ann", "fork"});
  change.past = shared_past{"s1", 2};
  change.session_revision = 2;
  BOOST_TEST(target->commit({&change, 1}).value().moved.empty());
  BOOST_TEST(target->load_events({"press", "ann", "fork"}, 1, 9).value().size()
             == 2U);
  BOOST_TEST(target->check({}).value().empty());
}

// Version 3 cannot trim sessions.
BOOST_AUTO_TEST_CASE(tables_of_version_3_are_brought_forward) {
  const auto url = old_place(5);
  open_postgres_store(url).value()->close().value();
  raw_connection connection(url);
  BOOST_TEST(connection.run("DROP TABLE first_states;"
                            "DROP TABLE open_runs; DROP TABLE run_holders;"
                            "UPDATE version SET number = 3")
             == "");
  const auto before = connection.value("SELECT max(number) FROM marks");
  const auto target = open_postgres_store(url).value();
  BOOST_TEST(version_of(url) == "5");
  BOOST_TEST(std::stoi(connection.value("SELECT max(number) FROM marks"))
             == std::stoi(before) + 2);
  store_change trim;
  trim.kind = change_kind::trim;
  trim.owner = session;
  trim.event = event_with("", {{"count", 3}});
  trim.kept = kept_past{3};
  BOOST_TEST(target->commit({&trim, 1}).value().moved.empty());
  BOOST_TEST(target->load_events(key, 4, 9).value().size() == 1U);
  for (const auto count : counting_client(*target).counts())
    BOOST_TEST(count == 4);
  BOOST_TEST(target->check({}).value().empty());
}

// Version 4 has no open runs.
BOOST_AUTO_TEST_CASE(tables_of_version_4_are_brought_forward) {
  const auto url = old_place(5);
  open_postgres_store(url).value()->close().value();
  raw_connection connection(url);
  BOOST_TEST(connection.run("DROP TABLE open_runs; DROP TABLE run_holders;"
                            "UPDATE version SET number = 4")
             == "");
  const auto before = connection.value("SELECT max(number) FROM marks");
  const auto target = open_postgres_store(url).value();
  BOOST_TEST(version_of(url) == "5");
  BOOST_TEST(std::stoi(connection.value("SELECT max(number) FROM marks"))
             == std::stoi(before) + 1);
  BOOST_TEST(target->list_runs({}).value().empty());
  BOOST_TEST(target->check({}).value().empty());
}

// Runs the statements of the older program, in its order.
BOOST_AUTO_TEST_CASE(
  a_connected_program_of_version_1_fails_and_writes_nothing) {
  const auto url = old_place(5);
  raw_connection old(url);
  for (const auto& [name, text] :
       {std::pair("find_last", "SELECT coalesce(max(id), 0) FROM log"),
        std::pair("find_bounds",
                  "SELECT id, least(id + 65536, (SELECT coalesce(max(id), 0)"
                  " FROM log)), (SELECT coalesce(max(id), 0) FROM log)"
                  " FROM folded"),
        std::pair("load",
                  "SELECT key FROM state UNION ALL SELECT delta FROM log"
                  " WHERE id > (SELECT id FROM folded) AND usr = 5"),
        std::pair("removal",
                  "INSERT INTO log (id, writer, time, kind, body)"
                  " VALUES (99, 7, 1, 3, '{}')")}) {
    BOOST_TEST(old.prepare(name, text) == "");
    BOOST_TEST(old.run("BEGIN") == "");
    BOOST_TEST(old.run_prepared(name) == "");
    BOOST_TEST(old.run("ROLLBACK") == "");
  }
  const auto target = open_postgres_store(url).value();
  for (const auto* const name : {"find_last", "find_bounds", "load"}) {
    BOOST_TEST(old.run("BEGIN") == "");
    const auto why = old.run_prepared(name);
    BOOST_TEST(why.find("restart with the newer program") != std::string::npos,
               name << ": " << why);
    BOOST_TEST(old.run("ROLLBACK") == "");
  }
  BOOST_TEST(old.run_prepared("removal") != "");
  BOOST_TEST(
    old.copy("COPY log (id, writer, time, kind) FROM STDIN", "6\t7\t1\t2\n")
    != "");
  BOOST_TEST(raw_connection(url).value("SELECT max(id) FROM change_log")
             == "5");
  BOOST_TEST(target->check({}).value().empty());
}

BOOST_AUTO_TEST_CASE(a_killed_migration_leaves_the_older_version) {
  const auto url = old_place(5);
  raw_connection reader(url);
  // The migration renames the log, then waits for the lock of the scopes.
  BOOST_TEST(reader.run("BEGIN; LOCK TABLE scopes IN ROW EXCLUSIVE MODE")
             == "");
  const auto child = fork();
  if (child == 0)
    _exit(open_postgres_store(url) ? 0 : 1);
  const std::string waiting = " FROM pg_stat_activity"
                              " WHERE wait_event_type = 'Lock'";
  const auto waits_for = [&waiting](const std::string& count) {
    const auto deadline
      = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (shared_server().ask("SELECT count(*)" + waiting) != count) {
      BOOST_REQUIRE(std::chrono::steady_clock::now() < deadline);
      std::this_thread::yield();
    }
  };
  waits_for("1");
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  BOOST_TEST(WIFSIGNALED(status));
  // The server notices that the client is dead only when it sends an answer,
  // and may have completed the migration by then. So the test ends the client's
  // database session.
  shared_server().ask("SELECT pg_terminate_backend(pid)" + waiting);
  waits_for("0");
  BOOST_TEST(reader.run("ROLLBACK") == "");
  BOOST_TEST(version_of(url) == "1");
  // A program of the older version continues.
  BOOST_TEST(reader.run(rows_of_version_1(6, 6)) == "");
  BOOST_TEST(reader.value("SELECT count(*) FROM log") == "6");
  BOOST_TEST(reader.value("SELECT count(*) FROM pg_class WHERE relname IN"
                          " ('change_log', 'marks') AND relnamespace ="
                          " current_schema()::regnamespace")
             == "0");
  const auto target = open_postgres_store(url).value();
  BOOST_TEST(version_of(url) == "5");
  BOOST_TEST(counting_client(*target).counts()[2] == 5);
  BOOST_TEST(target->check({}).value().empty());
}

BOOST_AUTO_TEST_CASE(a_migration_whose_server_is_killed_is_all_or_nothing) {
  postgres_server server(postgres_server::syncing::on);
  const auto url = server.url("killed");
  {
    raw_connection connection(url);
    BOOST_TEST(connection.run("CREATE SCHEMA killed") == "");
    BOOST_TEST(connection.run(tables_of_version_1) == "");
    BOOST_TEST(connection.run(rows_of_version_1(1, 20'000)) == "");
  }
  auto reader = std::make_unique<raw_connection>(url);
  BOOST_TEST(reader->run("BEGIN; LOCK TABLE scopes IN ROW EXCLUSIVE MODE")
             == "");
  // The migration renames the log, then waits for the reader of the scopes.
  std::string outcome;
  std::thread migration([&] { outcome = code_of(open_postgres_store(url)); });
  const auto deadline
    = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (server.ask("SELECT count(*) FROM pg_locks WHERE NOT granted"
                    " AND locktype = 'relation'")
           == "0"
         && std::chrono::steady_clock::now() < deadline)
    std::this_thread::yield();
  server.kill();
  migration.join();
  BOOST_TEST(outcome == "store_failed");
  reader.reset();
  server.start();
  BOOST_TEST(version_of(url) == "1");
  const auto target = open_postgres_store(url).value();
  BOOST_TEST(version_of(url) == "5");
  BOOST_TEST(counting_client(*target).counts()[1] == 19'999);
}

BOOST_AUTO_TEST_CASE(a_connected_program_notices_a_newer_version) {
  const auto url = old_place(5);
  const auto target = open_postgres_store(url).value();
  counting_client client(*target);
  raw_connection newer(url);
  // A migration also writes a mark, so that every commit looks at the version.
  BOOST_TEST(
    newer.run("UPDATE version SET number = 6;"
              "INSERT INTO marks SELECT number + 1, 7, stamp FROM marks"
              " ORDER BY number DESC LIMIT 1")
    == "");
  for (const auto& outcome : {client.count("late"), client.load()}) {
    BOOST_TEST(code_of(outcome) == "store_failed");
    BOOST_TEST(reason_of(outcome).find("restart with the newer program")
                 != std::string::npos,
               reason_of(outcome));
  }
  BOOST_TEST(code_of(target->close()) == "store_failed");
  BOOST_TEST(newer.value("SELECT max(id) FROM change_log") == "5");
  BOOST_TEST(newer.value("SELECT id FROM folded") == "0");
}

BOOST_AUTO_TEST_SUITE_END()
