#include "troupe/stores/conformance/suite.hpp"
#include "troupe/stores/sqlite/open.hpp"
#include "troupe/stores/sqlite/sums.hpp"

#include "../outcome.hpp"
#include "../random.hpp"
#include "child_process.hpp"
#include "conformance.hpp"
#include "sqlite_file.hpp"
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

using namespace troupe;
using namespace troupe::testing;
namespace fs = std::filesystem;
namespace data = boost::unit_test::data;

BOOST_FIXTURE_TEST_SUITE(sqlite_store, sqlite_file)

namespace {

store_factory files_that_fold(std::int64_t rows) {
  return {[rows] {
    auto folder = std::make_shared<temporary_folder>();
    return [folder, rows] {
      return detail::open_sqlite_store(
        {.file = folder->path() / "s.db", .fold_rows = rows});
    };
  }};
}

void check_conformance(const store_factory& factory) {
  for (const auto& check : conformance_checks(factory))
    for (const auto& failure : check.run(factory))
      BOOST_ERROR(check.name << ": " << failure);
}

row_query of_press() {
  row_query query;
  query.app = "press";
  return query;
}

} // namespace

BOOST_AUTO_TEST_CASE(conforms_when_nothing_is_folded) {
  check_conformance(files_that_fold(1'000'000));
}

BOOST_AUTO_TEST_CASE(conforms_when_all_is_folded_in_slices) {
  check_conformance(files_that_fold(5));
}

// Lists of the seeds from 24 on were once out of order: another process had
// folded rows that the reader had not seen.
BOOST_DATA_TEST_CASE(agrees_with_the_model,
                     data::make({0, 1, 2, 3, 4, 5, 24, 38, 39, 103}),
                     seed) {
  if (static_cast<std::uint64_t>(seed) >= lockstep_seeds(1'000))
    return; // Covered by the run without a sanitizer.
  const auto factory = files_that_fold(seed % 2 == 0 ? 8'192 : 7);
  for (const auto& failure :
       conformance_lockstep(factory, static_cast<std::uint64_t>(seed)))
    BOOST_ERROR(failure);
}

// -- several processes ----

BOOST_AUTO_TEST_CASE(four_processes_lose_no_update) {
  constexpr int processes = 4;
  constexpr int rounds = 60;
  open()->close().value();
  std::array<pid_t, processes> children{};
  for (int process = 0; process < processes; ++process)
    children[static_cast<std::size_t>(process)] = start([&, process] {
      const auto mine = open(5);
      // Two processes share a session; all share the user and the app.
      const session_key key{"press", "ann", "s" + std::to_string(process / 2)};
      counter counting(*mine, key);
      counting.create();
      for (int round = 0; round < rounds; ++round)
        counting.add(std::to_string(process) + "-" + std::to_string(round));
      mine->close().value();
    });
  for (const auto child : children)
    BOOST_TEST(await(child) == 0);
  const auto read = open();
  const auto user = read->load_scope({"press", "ann"}).value().value();
  BOOST_TEST(counter::count(user.keys) == processes * rounds);
  BOOST_TEST(user.revision == processes * rounds);
  const auto app = read->load_scope({"press"}).value().value();
  BOOST_TEST(counter::count(app.keys) == processes * rounds);
  for (const auto* id : {"s0", "s1"}) {
    const auto session
      = read->load_session({"press", "ann", id}, {}).value().value();
    BOOST_TEST(counter::count(session.scope.keys) == 2 * rounds);
    BOOST_TEST(session.id_hashes.size() == 2 * rounds);
  }
  BOOST_TEST(read->check({}).value().empty());
}

BOOST_AUTO_TEST_CASE(entries_that_have_moved_are_found_with_the_fresh_ones) {
  const session_key bob{"press", "bob", "s2"};
  std::string expected;
  {
    const auto made = open(5);
    for (const auto& key : {ann, bob})
      counter(*made, key).create();
    for (int number = 1; number <= 150; ++number) {
      for (const auto& key : {ann, bob})
        counter(*made, key).add("e" + std::to_string(number));
      expected += "e" + std::to_string(number) + " ";
    }
    made->close().value();
    // Too few rows for another settling.
    const auto again = open(5);
    for (int number = 151; number <= 155; ++number) {
      for (const auto& key : {ann, bob})
        counter(*again, key).add("e" + std::to_string(number));
      expected += "e" + std::to_string(number) + " ";
    }
    again->close().value();
  }
  BOOST_TEST(number("SELECT count(*) FROM settled_entries") > 0);
  BOOST_TEST(number("SELECT count(*) FROM fresh_entries") > 0);
  const auto read = open();
  BOOST_TEST(ids_of(read->load_events(ann, 1, 155).value()) == expected);
  BOOST_TEST(
    ids_of(read->load_session(bob, {.events_max = 155}).value().value().events)
    == expected);
  BOOST_TEST(read->check({}).value().empty());
  // A removal finds the rows of the session in both tables.
  store_change gone;
  gone.kind = change_kind::remove;
  gone.owner = {ann.app, ann.user, ann.id};
  BOOST_TEST(read->commit(std::array{gone}).value().moved.empty());
  read->close().value();
  BOOST_TEST(number("SELECT count(*) FROM log WHERE event IS NOT NULL") == 155);
  BOOST_TEST(
    number("SELECT count(*) FROM settled_entries WHERE id_hash IS NOT NULL")
      + number("SELECT count(*) FROM fresh_entries"
               " WHERE id_hash IS NOT NULL")
    == 155);
}

// The child reports each acknowledged event through a pipe, whose bytes survive
// it.
BOOST_DATA_TEST_CASE(a_killed_process_loses_nothing_acknowledged,
                     data::xrange(30),
                     seed) {
  random_source random(static_cast<std::uint64_t>(seed));
  const auto acknowledged_at_death = 1 + random.below(150);
  fill(0);
  std::array<int, 2> pipe{};
  BOOST_REQUIRE(::pipe(pipe.data()) == 0);
  const auto child = start([&] {
    const auto mine = open(40);
    counter counting(*mine, ann);
    for (int number = 1;; ++number) {
      counting.add("e" + std::to_string(number));
      if (::write(pipe[1], "!", 1) != 1)
        return;
    }
  });
  ::close(pipe[1]);
  std::size_t acknowledged = 0;
  char byte = 0;
  while (acknowledged < acknowledged_at_death && ::read(pipe[0], &byte, 1) == 1)
    ++acknowledged;
  ::kill(child, SIGKILL);
  BOOST_TEST(WIFSIGNALED(await(child)));
  while (::read(pipe[0], &byte, 1) == 1)
    ++acknowledged;
  ::close(pipe[0]);

  const auto again = open(40);
  const auto session
    = again->load_session(ann, {.events_max = 1'000}).value().value();
  const auto count = session.events.size();
  BOOST_TEST(count >= acknowledged);
  BOOST_TEST(count <= acknowledged + 1);
  for (std::size_t index = 0; index < count; ++index)
    BOOST_TEST(session.events[index]->id == "e" + std::to_string(index + 1));
  BOOST_TEST(session.scope.revision == count);
  for (const auto& owner : {owner_name{"press"}, owner_name{"press", "ann"}})
    BOOST_TEST(static_cast<std::size_t>(
                 counter::count(again->load_scope(owner).value().value().keys))
               == count);
  BOOST_TEST(again->check({}).value().empty());
  counter(*again, ann).add("after");
  BOOST_TEST(again->close().has_value());
}

BOOST_AUTO_TEST_CASE(a_locked_file_is_a_clear_error) {
  fill(3);
  sqlite3* other = nullptr;
  BOOST_REQUIRE(sqlite3_open(file.c_str(), &other) == SQLITE_OK);
  BOOST_REQUIRE(
    sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr)
    == SQLITE_OK);
  const auto mine
    = detail::open_sqlite_store(
        {.file = file, .lock_timeout = std::chrono::milliseconds(20)})
        .value();
  const auto refused = mine->commit(std::array{creation({"press", "b", "1"})});
  BOOST_TEST(code_of(refused) == "store_failed");
  BOOST_TEST(reason_of(refused).find("locked by another process")
             != std::string::npos);
  BOOST_TEST(mine->load_session(ann, {}).value()->events.size() == 3U);
  sqlite3_close(other);
  BOOST_TEST(mine->commit(std::array{creation({"press", "b", "1"})})
               .value()
               .moved.empty());
}

// -- loads beside commits ----

BOOST_AUTO_TEST_CASE(readers_see_whole_changes_while_slices_are_folded) {
  const auto shared = open(20);
  counter counting(*shared, ann);
  counting.create();
  counting.add("first");
  std::atomic<bool> done = false;
  std::atomic<int> torn = 0;
  std::vector<std::thread> readers;
  for (int number = 0; number < 3; ++number)
    readers.emplace_back([&] {
      std::int64_t newest = 0;
      while (!done) {
        const auto rows = shared->list(of_press());
        if (!rows || rows->size() != 1) {
          ++torn;
          continue;
        }
        const auto& row = rows->front();
        const auto count = counter::count(row.session);
        if (count != counter::count(row.user) || count < newest
            || count != counter::count(row.app)
            || static_cast<std::uint64_t>(count) != row.revision)
          ++torn;
        newest = count;
        const auto session = shared->load_session(ann, {.events_max = 3});
        if (!session || !*session
            || counter::count((*session)->scope.keys) < newest)
          ++torn;
      }
    });
  for (int number = 0; number < 400; ++number)
    counting.add("e" + std::to_string(number));
  done = true;
  for (auto& reader : readers)
    reader.join();
  BOOST_TEST(torn == 0);
}

// -- removals ----

BOOST_AUTO_TEST_CASE(a_removed_session_leaves_no_byte_of_its_events) {
  {
    const auto made = open();
    made->commit(std::array{creation(ann)}).value();
    store_change said;
    said.owner = {"press", "ann", "s1"};
    said.event = make_event("canary-id",
                            {{"canary-key", "canary-value"}, {"user:kept", 1}});
    said.session_revision = 1;
    said.user_revision = 1;
    store_change removed;
    removed.kind = change_kind::remove;
    removed.owner = said.owner;
    made->commit(std::array{said, removed}).value();
    made->close().value();
  }
  execute("VACUUM");
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(in)), {});
    BOOST_TEST(bytes.find("canary") == std::string::npos);
  }
  const auto again = open();
  BOOST_TEST(again->load_scope({"press", "ann"}).value().value().revision
             == 1U);
  BOOST_TEST(again->check({}).value().empty());
}

BOOST_AUTO_TEST_CASE(long_sessions_are_cleared_away_in_slices) {
  const auto made = open(10);
  counter counting(*made, ann);
  counting.create();
  for (int number = 0; number < 700; ++number)
    counting.add("e" + std::to_string(number));
  store_change removed;
  removed.kind = change_kind::remove_user;
  removed.owner = {"press", "ann"};
  made->commit(std::array{removed}).value();
  BOOST_TEST(!made->load_session(ann, {}).value().has_value());
  counter other(*made, {"press", "bob", "s1"});
  other.create();
  for (int number = 0; number < 200; ++number)
    other.add("o" + std::to_string(number));
  BOOST_TEST(made->check({}).value().empty());
  made->close().value();
  sqlite3* database = nullptr;
  BOOST_REQUIRE(sqlite3_open(file.c_str(), &database) == SQLITE_OK);
  int left = -1;
  sqlite3_exec(
    database,
    "SELECT (SELECT count(*) FROM purges) + (SELECT count(*) FROM log WHERE"
    " body LIKE '%said e%')",
    [](void* found, int, char** columns, char**) {
      *static_cast<int*>(found) = std::stoi(columns[0]);
      return 0;
    },
    &left,
    nullptr);
  sqlite3_close(database);
  BOOST_TEST(left == 0);
}

// -- files ----

BOOST_AUTO_TEST_CASE(a_missing_file_reads_as_empty_and_is_not_made) {
  const auto read = open();
  BOOST_TEST(!read->load_session(ann, {}).value().has_value());
  BOOST_TEST(read->list(of_press()).value().empty());
  BOOST_TEST(read->changed_elsewhere().value().empty());
  BOOST_TEST(read->check({}).value().empty());
  BOOST_TEST(read->close().has_value());
  BOOST_TEST(!fs::exists(file));
}

// A reader must not see the file between two steps of its creation. A single
// reader rarely hits that moment, so there are many rounds.
BOOST_AUTO_TEST_CASE(a_file_that_is_being_made_is_empty_or_whole) {
  std::atomic<int> refused = 0;
  for (int round = 0; round < 100; ++round) {
    const auto making = folder.path() / fmt::format("{}.db", round);
    std::atomic<bool> is_made = false;
    std::thread looking([&] {
      while (!is_made)
        if (!open_sqlite_store(making))
          ++refused;
    });
    const auto made = open_sqlite_store(making).value();
    const auto committed = made->commit(std::array{creation(ann)});
    is_made = true;
    looking.join();
    BOOST_TEST_REQUIRE(committed.has_value());
  }
  BOOST_TEST(refused == 0);
}

BOOST_AUTO_TEST_CASE(only_the_owner_may_read_the_files) {
  const auto made = open();
  made->commit(std::array{creation(ann)}).value();
  for (const auto* suffix : {"", "-wal", "-shm"}) {
    struct stat found {};

    BOOST_TEST(::stat((file.string() + suffix).c_str(), &found) == 0);
    BOOST_TEST((found.st_mode & 0777U) == 0600U, "the mode of s.db" << suffix);
  }
}

BOOST_AUTO_TEST_CASE(a_name_that_looks_like_a_uri_is_a_file) {
  const auto before = fs::current_path();
  fs::current_path(folder.path());
  const auto made = open_sqlite_store("file:x.db%3fmode=memory").value();
  made->commit(std::array{creation(ann)}).value();
  made->close().value();
  const bool is_there = fs::exists("file:x.db%3fmode=memory");
  fs::current_path(before);
  BOOST_TEST(is_there);
}

BOOST_AUTO_TEST_CASE(closing_leaves_one_file) {
  fill(5);
  BOOST_TEST(!fs::exists(file.string() + "-wal"));
  BOOST_TEST(open()->load_session(ann, {}).value()->events.size() == 5U);
}

BOOST_AUTO_TEST_CASE(a_missing_parent_folder_is_refused) {
  file = folder.path() / "none" / "s.db";
  BOOST_TEST(refusal() == "store_failed");
}

BOOST_AUTO_TEST_CASE(a_folder_is_refused) {
  fs::create_directory(file);
  BOOST_TEST(refusal() == "store_failed");
}

BOOST_AUTO_TEST_CASE(a_file_that_is_no_database_is_refused) {
  std::ofstream(file) << std::string(5'000, 'x');
  BOOST_TEST(refusal() == "corrupt");
}

BOOST_AUTO_TEST_CASE(another_programs_database_is_refused_and_left_alone) {
  execute("CREATE TABLE theirs(a)");
  BOOST_TEST(refusal() == "corrupt");
  BOOST_TEST(!fs::exists(file.string() + "-wal"));
}

// SQLite would also compare keys in that encoding, and find none.
BOOST_AUTO_TEST_CASE(an_empty_database_in_another_encoding_is_refused) {
  execute("PRAGMA encoding='UTF-16be'; CREATE TABLE t(a); DROP TABLE t");
  BOOST_TEST(refusal() == "corrupt");
}

BOOST_AUTO_TEST_CASE(a_missing_table_is_refused) {
  fill(1);
  execute("DROP TABLE settled_entries");
  BOOST_TEST(refusal() == "corrupt");
}

BOOST_AUTO_TEST_CASE(an_empty_file_is_an_empty_store) {
  std::ofstream touched(file);
  touched.close();
  fill(2);
  BOOST_TEST(open()->load_session(ann, {}).value()->events.size() == 2U);
}

// For any damage, a read returns the right data or an error, and `check`
// reports it.
BOOST_DATA_TEST_CASE(damaged_pages_are_never_guessed_at,
                     data::xrange(40),
                     seed) {
  random_source random(static_cast<std::uint64_t>(seed));
  fill(60);
  const auto sound
    = ids_of(open()->load_session(ann, {}).value().value().events);
  const auto size = fs::file_size(file);
  {
    std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
    // Leaves out the first page, whose unused bytes have no meaning.
    bytes.seekp(static_cast<std::streamoff>(
      4'096 + random.below(static_cast<std::size_t>(size) - 4'096 - 64)));
    bytes << std::string(64, static_cast<char>(random.below(256)));
  }
  const auto opened = open_sqlite_store(file);
  if (!opened) {
    BOOST_TEST(code_of(opened) == "corrupt");
    return;
  }
  const auto findings = (*opened)->check({});
  const bool is_found = !findings || !findings->empty();
  const auto loaded = (*opened)->load_session(ann, {.events_max = 100});
  if (!loaded)
    BOOST_TEST(code_of(loaded) == "corrupt");
  else if (!is_found)
    BOOST_TEST(ids_of(loaded->value().events) == sound);
}

const std::array unwritten_rows = {
  "UPDATE log SET body=replace(body,'a','b') WHERE id=5",
  "UPDATE log SET body='{}' WHERE id=5",
  "UPDATE log SET event='e77' WHERE id=5",
  "UPDATE log SET time=time+1 WHERE id=5",
  "UPDATE log SET delta='{}' WHERE id=5",
  "UPDATE log SET session_revision=9 WHERE id=5",
  "UPDATE log SET id=500 WHERE id=5",
  "DELETE FROM log WHERE id=5",
  "UPDATE fresh_entries SET log=6 WHERE log=5",
  "UPDATE fresh_entries SET number=50 WHERE log=5",
  "DELETE FROM fresh_entries WHERE log=5",
  "UPDATE state SET value='77' WHERE key='n'",
  "UPDATE state SET value=77 WHERE key='n'",
  "UPDATE state SET key='m' WHERE key='n'",
  "DELETE FROM state WHERE key='n'",
  "INSERT INTO state SELECT scope,'m',value,row_sum(scope,'m',value) FROM state"
  " WHERE key='n'",
  "UPDATE scopes SET revision=revision-1 WHERE session='s1'",
  "UPDATE scopes SET updated=1 WHERE session='s1'",
  "UPDATE scopes SET keys=0 WHERE session='s1'",
  "UPDATE fold_places SET value=value-1 WHERE name='folded'",
  "UPDATE fresh_entries SET id_hash=id_hash+1 WHERE log=5",
  "DELETE FROM fresh_entries WHERE number=0",
};

// Changes rows without their checksums, as a damaged disk would.
BOOST_DATA_TEST_CASE(rows_that_nobody_wrote_are_refused,
                     data::make(unwritten_rows),
                     damage) {
  fill(10);
  BOOST_TEST(number("SELECT count(*) FROM fresh_entries") == 11);
  execute(damage);
  const auto opened = open_sqlite_store(file);
  if (!opened) {
    BOOST_TEST(code_of(opened) == "corrupt");
    return;
  }
  const auto loaded
    = (*opened)->load_session(ann, {.events_max = 100, .ids_max = 100});
  BOOST_TEST(code_of(loaded) == "corrupt");
  const auto findings = (*opened)->check({});
  BOOST_TEST((!findings || !findings->empty()));
}

BOOST_AUTO_TEST_CASE(a_gap_in_what_is_not_folded_is_corrupt) {
  const auto made = open(1'000'000);
  counter counting(*made, ann);
  counting.create();
  for (int number = 1; number <= 9; ++number)
    counting.add("e" + std::to_string(number));
  const auto copy = folder.path() / "copy.db";
  execute("VACUUM INTO '" + copy.string() + "'");
  made->close().value();
  file = copy;
  // The numbers of the log's rows still have no gap.
  execute("DELETE FROM log WHERE session_revision=5;"
          "UPDATE log SET id=id-1 WHERE session_revision>5;"
          "UPDATE log SET head_sum=row_sum(id,kind,session,user,app,"
          "session_revision,user_revision,app_revision,time,event,delta),"
          "body_sum=row_sum(id,body)");
  BOOST_TEST(code_of(open(1'000'000)->load_session(ann, {})) == "corrupt");
}

BOOST_AUTO_TEST_CASE(a_row_of_another_user_is_refused) {
  fill(1);
  execute("UPDATE scopes SET user='bob' WHERE session='' AND user='ann'");
  BOOST_TEST(code_of(open()->load_scope({"press", "bob"})) == "corrupt");
}

BOOST_AUTO_TEST_CASE(check_names_what_does_not_follow_from_the_log) {
  fill(10);
  execute("UPDATE state SET value='77',sum=row_sum(scope,key,'77')"
          " WHERE key='n' AND scope=(SELECT id FROM scopes WHERE"
          " session='s1')");
  const auto findings = open()->check({}).value();
  BOOST_TEST(findings.size() == 1U);
  BOOST_TEST(findings.front()
             == "press/ann/s1: the key 'n' differs from the replay of its log");
}

BOOST_AUTO_TEST_CASE(check_misses_no_event) {
  fill(10);
  execute("DELETE FROM log WHERE id=5");
  BOOST_TEST(!open()->check({}).value().empty());
  BOOST_TEST(code_of(open()->load_session(ann, {})) == "corrupt");
}

BOOST_AUTO_TEST_SUITE_END()
