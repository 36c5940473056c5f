// Memories in PostgreSQL: their tables, and what they share with a session
// store. And the addresses of memory services.

#include "troupe/stores/postgres/open.hpp"
#include "troupe/stores/postgres/pool.hpp"

#include "memory_places.hpp"
#include <boost/test/unit_test.hpp>

#include <stdexcept>
#include <thread>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(postgres_memories)

BOOST_AUTO_TEST_CASE(are_shared_by_processes) {
  const auto url = fresh_schema();
  std::vector<std::unique_ptr<memory_service>> opened(4);
  {
    std::vector<std::thread> threads;
    for (auto& each : opened)
      threads.emplace_back(
        [&each, &url] { each = open_postgres_memories(url).value(); });
    for (auto& each : threads)
      each.join();
  }
  opened[0]->add("press", "ann", {note("n1", "tea")}).value();
  BOOST_TEST(ids_of(opened[1]->search("press", "ann", "tea")) == "n1");
  opened[2]->remove_user("press", "ann").value();
  BOOST_TEST(ids_of(opened[3]->search("press", "ann", "tea")) == "");
}

// Removals and additions of one user at the same time leave no row without a
// user, and fail none of them.
BOOST_AUTO_TEST_CASE(are_removed_while_others_add) {
  const auto url = fresh_schema();
  const auto one = open_postgres_memories(url).value();
  const auto other = open_postgres_memories(url).value();
  std::thread adding([&one] {
    for (int count = 0; count < 50; ++count)
      one
        ->add_events({"press", "ann", "s1"},
                     {said_by("user", std::to_string(count), "tea")})
        .value();
  });
  for (int count = 0; count < 50; ++count)
    other->remove_user("press", "ann").value();
  adding.join();
  other->remove_user("press", "ann").value();
  const auto schema = url.substr(url.rfind("memory_"));
  for (const auto* table : {"memories", "memory_users"})
    BOOST_TEST(memory_server().ask("SELECT count(*) FROM "
                                   + schema.substr(0, schema.find('&')) + "."
                                   + table)
               == "0");
}

// The next caller would read the answer to the statement that is still queued.
BOOST_AUTO_TEST_CASE(an_exception_drops_the_connection) {
  constexpr postgres_statement begin{"test_begin", "BEGIN"};
  constexpr postgres_statement one{"test_one", "SELECT 1"};
  constexpr postgres_statement two{"test_two", "SELECT 2"};
  postgres_setup setup;
  setup.schema = "memory_leases";
  const auto url = memory_server().url(setup.schema);
  open_postgres_memories(url).value();
  postgres_pool pool(url, setup);
  const auto fail = [&](postgres_connection& connection) -> result<void> {
    connection.queue(begin);
    connection.run("begin", postgres_deadline).value();
    connection.queue(one);
    throw std::runtime_error("in the middle");
  };
  BOOST_CHECK_THROW(static_cast<void>(pool.with(fail)), std::runtime_error);
  const auto ask = [&](postgres_connection& connection) -> result<std::string> {
    connection.queue(two);
    const auto answers = connection.run("ask", postgres_deadline);
    if (!answers)
      return answers.error();
    return std::string(answers->front().text(0, 0));
  };
  BOOST_TEST(pool.with(ask).value() == "2");
}

// Neither a user who was removed nor one without memories has a row.
BOOST_AUTO_TEST_CASE(no_row_stays_of_a_user_without_memories) {
  const std::string schema = "memory_rows";
  const auto on = open_postgres_memories(memory_server().url(schema)).value();
  const session_key ann_1{"press", "ann", "s1"};
  const auto users = [&] {
    return memory_server().ask("SELECT count(*) FROM " + schema
                               + ".memory_users");
  };
  on->add_session(session_of(ann_1, {said_by("user", "e1", "?!")})).value();
  BOOST_TEST(users() == "0");
  const auto add = [&] {
    on->add_session(session_of(ann_1, {said_by("user", "e1", "tea")})).value();
    BOOST_TEST(users() == "1");
  };
  add();
  on->remove_session(ann_1).value();
  BOOST_TEST(users() == "0");
  add();
  on->remove("press", "ann", "s1", "e1").value();
  BOOST_TEST(users() == "0");
  add();
  on->add_session(session_of(ann_1, {})).value();
  BOOST_TEST(users() == "0");
  add();
  on->add("press", "ann", {note("n1", "tea")}).value();
  on->remove_session(ann_1).value();
  BOOST_TEST(users() == "1");
  BOOST_TEST(ids_of(on->search("press", "ann", "tea")) == "n1");
}

BOOST_AUTO_TEST_CASE(may_share_the_schema_of_a_session_store) {
  for (const bool sessions_first : {true, false}) {
    const auto url = fresh_schema();
    const auto open_sessions
      = [&url] { return open_postgres_store(url).value()->close(); };
    if (sessions_first)
      open_sessions().value();
    const auto on = open_postgres_memories(url).value();
    on->add("press", "ann", {note("n1", "tea")}).value();
    open_sessions().value();
    BOOST_TEST(ids_of(on->search("press", "ann", "tea")) == "n1");
  }
}

BOOST_AUTO_TEST_CASE(are_found_after_the_server_was_away) {
  postgres_server server;
  const auto on = open_postgres_memories(server.url("m")).value();
  on->add("press", "ann", {note("n1", "tea")}).value();
  server.stop(postgres_server::stopping::immediate);
  BOOST_TEST(code_of(on->search("press", "ann", "tea")) == "store_failed");
  BOOST_TEST(code_of(on->remove_user("press", "ann")) == "store_failed");
  server.start();
  BOOST_TEST(ids_of(on->search("press", "ann", "tea")) == "n1");
}

BOOST_AUTO_TEST_CASE(tables_of_a_newer_version_are_refused) {
  const auto url = memory_server().url("memory_newer");
  open_postgres_memories(url).value();
  memory_server().ask("UPDATE memory_newer.memory_version SET number = 99");
  BOOST_TEST(code_of(open_postgres_memories(url)) == "corrupt");
}

BOOST_AUTO_TEST_CASE(an_address_names_a_service) {
  const temporary_folder folder;
  const auto file = "sqlite:" + (folder.path() / "m.db").string();
  open_memory_service(file).value()->add("a", "u", {note("n", "tea")}).value();
  BOOST_TEST(ids_of(open_memory_service(file).value()->search("a", "u", "tea"))
             == "n");
  BOOST_TEST(code_of(open_memory_service("memory:")) == "ok");
  BOOST_TEST(code_of(open_memory_service(fresh_schema())) == "ok");
  for (const auto* bad : {"",
                          "memory",
                          "memory:x",
                          "file:x",
                          "sqlite:",
                          "sqlite:../x",
                          "sqlite:a?b",
                          "postgres:x",
                          "postgres://ann:horse@staple@127.0.0.1/x"}) {
    const auto opened = open_memory_service(bad);
    BOOST_TEST(code_of(opened) == "invalid_argument", bad);
    BOOST_TEST(reason_of(opened).find("memory service") != std::string::npos);
    BOOST_TEST(reason_of(opened).find("horse") == std::string::npos);
  }
}

BOOST_AUTO_TEST_SUITE_END()
