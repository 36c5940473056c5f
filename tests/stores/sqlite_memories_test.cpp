// Memories in a SQLite file: what is in the file, and who may open it.

#include "troupe/stores/memories/in_sqlite.hpp"

#include "memory_places.hpp"
#include <boost/test/unit_test.hpp>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <fstream>
#include <iterator>
#include <thread>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(sqlite_memories)

namespace {

namespace fs = std::filesystem;

const session_key ann_1{"press", "ann", "s1"};

struct memory_file {
  std::unique_ptr<memory_service> open() const {
    return open_sqlite_memories(file).value();
  }

  void execute(const std::string& sql) const {
    sqlite3* database = nullptr;
    BOOST_REQUIRE(sqlite3_open(file.c_str(), &database) == SQLITE_OK);
    BOOST_TEST(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr)
               == SQLITE_OK);
    sqlite3_close(database);
  }

  static std::string bytes_of(const fs::path& path) {
    std::ifstream source(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(source), {}};
  }

  // True if a file of the folder holds these bytes.
  bool holds(const std::string& bytes) const {
    for (const auto& each : fs::directory_iterator(folder.path()))
      if (bytes_of(each.path()).find(bytes) != std::string::npos)
        return true;
    return false;
  }

  temporary_folder folder;
  fs::path file = folder.path() / "m.db";
};

} // namespace

BOOST_FIXTURE_TEST_CASE(outlive_the_service, memory_file) {
  open()->add("press", "ann", {note("n1", "tea")}).value();
  BOOST_TEST(ids_of(open()->search("press", "ann", "tea")) == "n1");
  BOOST_TEST((fs::status(file).permissions()
              == (fs::perms::owner_read | fs::perms::owner_write)));
}

BOOST_FIXTURE_TEST_CASE(only_an_added_memory_makes_the_file, memory_file) {
  const auto on = open();
  BOOST_TEST(ids_of(on->search("press", "ann", "tea")) == "");
  BOOST_TEST(!on->remove("press", "ann", "s1", "n1").value());
  BOOST_TEST(!on->remove_session(ann_1).value());
  BOOST_TEST(!on->remove_user("press", "ann").value());
  BOOST_TEST(on->add_events(ann_1, {}).value() == 0U);
  BOOST_TEST(!fs::exists(file));
  // Another service finds the file that this one has made.
  const auto other = open();
  on->add("press", "ann", {note("n1", "tea")}).value();
  BOOST_TEST(ids_of(other->search("press", "ann", "tea")) == "n1");
}

BOOST_FIXTURE_TEST_CASE(are_shared_by_processes, memory_file) {
  const auto one = open();
  const auto other = open();
  std::vector<std::thread> threads;
  for (auto* each : {one.get(), other.get()})
    threads.emplace_back([each] {
      for (int count = 0; count < 20; ++count)
        each
          ->add_events(ann_1,
                       {said_by("user", "e" + std::to_string(count), "tea")})
          .value();
    });
  for (auto& each : threads)
    each.join();
  for (auto* each : {one.get(), other.get()})
    BOOST_TEST(each->search("press", "ann", "tea", 50).value().size() == 20U);
  one->remove_user("press", "ann").value();
  BOOST_TEST(ids_of(other->search("press", "ann", "tea")) == "");
  // The number of a removed user may be given to another one.
  one->add("press", "bob", {note("n1", "tea")}).value();
  BOOST_TEST(ids_of(other->search("press", "bob", "tea")) == "n1");
  BOOST_TEST(ids_of(other->search("press", "ann", "tea")) == "");
}

BOOST_FIXTURE_TEST_CASE(are_found_while_an_addition_waits, memory_file) {
  const auto on = open();
  on->add("press", "ann", {note("n1", "tea")}).value();
  sqlite3* other = nullptr;
  BOOST_REQUIRE(sqlite3_open(file.c_str(), &other) == SQLITE_OK);
  const auto execute = [&](const char* sql) {
    BOOST_TEST(sqlite3_exec(other, sql, nullptr, nullptr, nullptr)
               == SQLITE_OK);
  };
  // The addition waits for this lock.
  execute("BEGIN IMMEDIATE");
  std::atomic<bool> has_begun = false;
  std::string added;
  std::thread adds([&] {
    has_begun = true;
    added = code_of(on->add("press", "ann", {note("n2", "tea")}));
  });
  while (!has_begun)
    std::this_thread::yield();
  // Few, since the addition waits only for a while.
  constexpr int searches = 50;
  int found = 0;
  for (int count = 0; count < searches; ++count)
    if (ids_of(on->search("press", "ann", "tea")) == "n1")
      ++found;
  execute("COMMIT");
  adds.join();
  BOOST_TEST(found == searches);
  BOOST_TEST(added == "ok");
  sqlite3_close(other);
  BOOST_TEST(ids_of(on->search("press", "ann", "tea")) == "n2 n1");
}

BOOST_FIXTURE_TEST_CASE(are_found_by_many_threads_at_once, memory_file) {
  const auto on = open();
  on->add("press", "ann", {note("n0", "tea")}).value();
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread)
    threads.emplace_back([&] {
      for (int count = 0; count < 50; ++count)
        if (!ids_of(on->search("press", "ann", "tea", 99)).ends_with("n0"))
          ++wrong;
    });
  for (int count = 1; count <= 20; ++count)
    on->add("press", "ann", {note("n" + std::to_string(count), "tea")}).value();
  for (auto& each : threads)
    each.join();
  BOOST_TEST(wrong == 0);
  BOOST_TEST(on->search("press", "ann", "tea", 99).value().size() == 21U);
}

BOOST_FIXTURE_TEST_CASE(leave_no_bytes_of_a_removed_user, memory_file) {
  const auto on = open();
  for (int count = 0; count < 50; ++count) {
    const auto id = std::to_string(count);
    on->add_events(
        {"press", "annabel", "s" + id},
        {said_by("user", "x-annabel-" + id, "pomegranate" + id + " zebra")})
      .value();
    on->add("press", "bob", {note("x-bob-" + id, "kumquat" + id + " zebra")})
      .value();
  }
  on->add_session(session_of({"press", "annabel", "s1"},
                             {said_by("user", "y", "pomegranates")}))
    .value();
  BOOST_TEST(holds("pomegranate"));
  BOOST_TEST(holds("annabel"));
  on->remove_user("press", "annabel").value();
  BOOST_TEST(!holds("pomegranate"));
  BOOST_TEST(!holds("annabel"));
  BOOST_TEST(holds("kumquat"));
  BOOST_TEST(on->search("press", "bob", "zebra", 99).value().size() == 50U);
  on->remove("press", "bob", "", "x-bob-7").value();
  BOOST_TEST(!holds("kumquat7"));
  on->remove_app("press").value();
  BOOST_TEST(!holds("kumquat"));
}

// Also words that only the index has.
BOOST_FIXTURE_TEST_CASE(leave_no_bytes_of_replaced_memories, memory_file) {
  const auto on = open();
  on->add("press", "bob", {note("b", "kumquat")}).value();
  const auto replace = [&](const std::vector<event_ptr>& events) {
    on->add_session(session_of(ann_1, events)).value();
  };
  replace({said_by("user", "e1", "Pomegranate Quince")});
  BOOST_TEST(holds("pomegranate"));
  replace({said_by("user", "e1", "Medlar")});
  BOOST_TEST(!holds("omegranate"));
  BOOST_TEST(!holds("uince"));
  replace({});
  BOOST_TEST(!holds("edlar"));
  BOOST_TEST(!holds("ann"));
  BOOST_TEST(ids_of(on->search("press", "bob", "kumquat")) == "b");
}

// A troupe that did not overwrite them has left words in the index.
BOOST_FIXTURE_TEST_CASE(leave_no_bytes_of_earlier_removals, memory_file) {
  for (const bool whole_app : {false, true}) {
    const auto on = open();
    on->add("press", "bob", {note("b", "kumquat")}).value();
    on->add("press", "ann", {note("n", "pomegranate")}).value();
    execute("PRAGMA secure_delete=ON;"
            "DELETE FROM memory_words WHERE rowid IN (SELECT id FROM memories "
            "WHERE event='n');"
            "DELETE FROM memories WHERE event='n'");
    BOOST_TEST_REQUIRE(holds("pomegranate"));
    const auto found
      = whole_app ? on->remove_app("press") : on->remove_user("press", "ann");
    BOOST_TEST(found.value() == whole_app);
    BOOST_TEST(!holds("pomegranate"));
  }
}

// A session store that was named by mistake stays as it is.
BOOST_FIXTURE_TEST_CASE(a_file_with_a_log_is_refused_unchanged, memory_file) {
  sqlite3* database = nullptr;
  BOOST_REQUIRE(sqlite3_open(file.c_str(), &database) == SQLITE_OK);
  // Keeps the log when the file is closed.
  sqlite3_db_config(database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  BOOST_TEST(sqlite3_exec(database,
                          "PRAGMA journal_mode=WAL;"
                          "CREATE TABLE sessions(id);"
                          "PRAGMA wal_checkpoint(TRUNCATE);"
                          "INSERT INTO sessions VALUES('s1')",
                          nullptr,
                          nullptr,
                          nullptr)
             == SQLITE_OK);
  sqlite3_close(database);
  const auto log = fs::path(file.string() + "-wal");
  const auto file_before = bytes_of(file);
  const auto log_before = bytes_of(log);
  // 2 is a file with a write-ahead log.
  BOOST_TEST_REQUIRE(file_before.at(18) == 2);
  BOOST_TEST_REQUIRE(!log_before.empty());
  BOOST_TEST(code_of(open_sqlite_memories(file)) == "corrupt");
  BOOST_TEST((bytes_of(file) == file_before));
  BOOST_TEST((bytes_of(log) == log_before));
}

// The child dies while it adds; each of its calls is there or not.
BOOST_FIXTURE_TEST_CASE(survive_a_kill, memory_file) {
  open();
  for (int round = 0; round < 3; ++round) {
    const auto child = ::fork();
    if (child == 0) {
      const auto on = open_sqlite_memories(file).value();
      for (int count = 0;; ++count) {
        const auto id = std::to_string(round) + "/" + std::to_string(count);
        on->add_events(ann_1,
                       {said_by("user", id + "a", "tea"),
                        said_by("user", id + "b", "tea")})
          .value();
      }
    }
    const auto on = open();
    while (
      on->search("press", "ann", "tea", static_cast<std::size_t>(2 * round + 1))
        .value()
        .size()
      < static_cast<std::size_t>(2 * round + 1))
      std::this_thread::yield();
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    BOOST_TEST(on->search("press", "ann", "tea", 100'000).value().size() % 2
               == 0U);
  }
  open()->remove_user("press", "ann").value();
  BOOST_TEST(ids_of(open()->search("press", "ann", "tea")) == "");
}

BOOST_FIXTURE_TEST_CASE(other_files_are_refused, memory_file) {
  execute("CREATE TABLE sessions(id)");
  BOOST_TEST(code_of(open_sqlite_memories(file)) == "corrupt");
  BOOST_TEST(reason_of(open_sqlite_memories(file)).find("m.db")
             != std::string::npos);
  std::ofstream(folder.path() / "text") << std::string(5'000, 'x');
  BOOST_TEST(code_of(open_sqlite_memories(folder.path() / "text"))
             == "corrupt");
  BOOST_TEST(code_of(open_sqlite_memories(folder.path())) == "store_failed");
  BOOST_TEST(code_of(open_sqlite_memories(folder.path() / "none" / "m"))
             == "store_failed");
}

BOOST_FIXTURE_TEST_CASE(a_newer_layout_is_refused, memory_file) {
  open()->add("press", "ann", {note("n1", "tea")}).value();
  execute("PRAGMA user_version=99");
  BOOST_TEST(code_of(open_sqlite_memories(file)) == "corrupt");
  BOOST_TEST(reason_of(open_sqlite_memories(file)).find("newer troupe")
             != std::string::npos);
}

BOOST_FIXTURE_TEST_CASE(damage_is_found, memory_file) {
  const auto on = open();
  on->add("press", "ann", {note("n1", "tea"), note("n2", "coffee")}).value();
  for (const auto* body : {"{", "[]", R"({"author":"a"})", R"({"author":1,
                           "content":{"parts":[]}})"}) {
    execute("UPDATE memories SET body='" + std::string(body)
            + "' WHERE event='n1'");
    BOOST_TEST(code_of(on->search("press", "ann", "tea")) == "corrupt", body);
  }
  BOOST_TEST(reason_of(on->search("press", "ann", "tea")).find("'n1'")
             != std::string::npos);
  BOOST_TEST(ids_of(on->search("press", "ann", "coffee")) == "n2");
  execute("DELETE FROM memories WHERE event='n2'");
  BOOST_TEST(code_of(on->search("press", "ann", "coffee")) == "corrupt");
}

BOOST_AUTO_TEST_SUITE_END()
