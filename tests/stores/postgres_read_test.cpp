// Reads of a PostgreSQL store: damage is reported, and a read costs as much as
// it returns.

#include "troupe/stores/postgres/open.hpp"

#include "../outcome.hpp"
#include "counting_client.hpp"
#include "postgres_server.hpp"
#include <boost/test/unit_test.hpp>
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
using namespace troupe::testing::counted;

BOOST_AUTO_TEST_SUITE(postgres_reads)

namespace {

postgres_server& shared_server() {
  static postgres_server server;
  return server;
}

struct place {
  std::string schema = [] {
    static int count = 0;
    return fmt::format("read_{}", ++count);
  }();
  std::string url = shared_server().url(schema);

  std::unique_ptr<store> open(bool read_only = false) const {
    return open_postgres_store(url, {.read_only = read_only}).value();
  }

  // Stores a session with so many events.
  void fill(int events) const {
    const auto target = open();
    std::vector<store_change> changes{create_session(session)};
    for (int i = 1; i <= events; ++i)
      changes.push_back(event_number(i, fmt::format("event-{}", i)));
    BOOST_REQUIRE(target->commit(changes).value().moved.empty());
    target->close().value();
  }

  static store_change event_number(int number, const std::string& id) {
    const auto revision = static_cast<std::uint64_t>(number);
    return {
      .kind = change_kind::append,
      .owner = session,
      .event = event_with(
        id, {{"count", number}, {"user:count", number}, {"app:count", number}}),
      .session_revision = revision,
      .user_revision = revision,
      .app_revision = revision};
  }

  void execute(const std::string& statements) const {
    shared_server().ask(
      fmt::format("SET search_path = {}; {}", schema, statements));
  }

  // Counts the rows of a table read by connections that have ended.
  std::int64_t rows_read(const std::string& table) const {
    const auto deadline
      = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (shared_server().ask("SELECT count(*) FROM pg_stat_activity"
                               " WHERE application_name = 'troupe'")
           != "0") {
      BOOST_REQUIRE(std::chrono::steady_clock::now() < deadline);
      std::this_thread::yield();
    }
    return std::stoll(shared_server().ask(fmt::format(
      "SELECT seq_tup_read + coalesce(idx_tup_fetch, 0) FROM"
      " pg_stat_user_tables WHERE schemaname = '{}' AND relname = '{}'",
      schema,
      table)));
  }
};

// Makes the store look as if no row had been folded.
constexpr auto unfold
  = "UPDATE folded SET id = 0; DELETE FROM state; UPDATE scopes SET revision ="
    " CASE WHEN session = '' THEN 0 ELSE -1 END;";

std::int64_t kilobytes_at_most() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return used.ru_maxrss;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_gap_or_a_repetition_in_a_session_is_corrupt) {
  for (const auto* const damage :
       {"DELETE FROM change_log WHERE session_revision = 1",
        "DELETE FROM change_log WHERE session_revision = 2",
        "DELETE FROM change_log WHERE session_revision = 4",
        "DROP INDEX log_session; CREATE INDEX log_session ON change_log"
        " (session, session_revision) INCLUDE (event_hash);"
        "UPDATE change_log SET session_revision = 2 WHERE session_revision = 3",
        "UPDATE change_log SET session_revision = 9 WHERE session_revision = "
        "4"})
    for (const bool is_folded : {true, false}) {
      // The last unfolded event is recorded nowhere else, so its loss is not
      // visible.
      if (!is_folded && std::string_view(damage).ends_with("4"))
        continue;
      const place kept;
      kept.fill(4);
      if (!is_folded)
        kept.execute(unfold);
      const auto target = kept.open(true);
      BOOST_TEST(code_of(target->load_session(key, {})) == "ok");
      BOOST_TEST(code_of(target->load_events(key, 1, 4)) == "ok");
      kept.execute(damage);
      BOOST_TEST(code_of(target->load_session(key, {})) == "corrupt", damage);
      BOOST_TEST(code_of(target->load_events(key, 1, 4)) == "corrupt", damage);
      BOOST_TEST(!target->check({}).value().empty());
    }
}

BOOST_AUTO_TEST_CASE(a_gap_or_a_repetition_in_a_user_or_an_app_is_corrupt) {
  for (const auto* const damage :
       {"UPDATE change_log SET {0} = NULL, {0}_revision = NULL WHERE"
        " {0}_revision = 2",
        "UPDATE change_log SET {0}_revision = 2 WHERE {0}_revision = 3"})
    for (const auto& owner : {user, app}) {
      const place kept;
      kept.fill(4);
      const auto target = kept.open(true);
      kept.execute(unfold);
      BOOST_TEST(code_of(target->load_scope(owner)) == "ok");
      auto statement = std::string(damage);
      const std::string name = owner == user ? "user" : "app";
      for (auto at = statement.find("{0}"); at != std::string::npos;
           at = statement.find("{0}"))
        statement.replace(
          at,
          3,
          statement.substr(at + 3, 1) == "_" || owner == app ? name : "usr");
      kept.execute(statement);
      BOOST_TEST(code_of(target->load_scope(owner)) == "corrupt", statement);
      BOOST_TEST(!target->check({}).value().empty());
    }
}

BOOST_AUTO_TEST_CASE(a_part_of_the_events_is_no_gap) {
  const place kept;
  kept.fill(4);
  const auto target = kept.open();
  BOOST_TEST(target->load_events(key, 2, 3).value().size() == 2U);
  BOOST_TEST(target->load_events(key, 4, 9).value().size() == 1U);
  BOOST_TEST(target->load_events(key, 5, 9).value().empty());
  const load_options two{.events_max = 2, .ids_max = 3};
  const auto loaded = target->load_session(key, two).value();
  BOOST_TEST(loaded->events.size() == 2U);
  BOOST_TEST(loaded->id_hashes.size() == 3U);
}

BOOST_AUTO_TEST_CASE(a_read_only_store_writes_nothing) {
  const place kept;
  BOOST_TEST(code_of(open_postgres_store(kept.url, {.read_only = true}))
             == "store_failed");
  BOOST_TEST(shared_server().ask(
               fmt::format("SELECT to_regnamespace('{}') IS NULL", kept.schema))
             == "t");
  kept.fill(4);
  kept.execute(unfold);
  const auto target = kept.open(true);
  BOOST_TEST(target->check({}).value().empty());
  BOOST_TEST(target->load_session(key, {}).value()->scope.revision == 4U);
  const auto change = place::event_number(5, "late");
  BOOST_TEST(code_of(target->commit({&change, 1})) == "store_failed");
  BOOST_TEST(code_of(target->close()) == "ok");
  BOOST_TEST(
    shared_server().ask(fmt::format("SELECT id FROM {}.folded", kept.schema))
    == "0");
}

BOOST_AUTO_TEST_CASE(a_retry_reads_one_row) {
  const place kept;
  kept.fill(5'000);
  kept.execute("ANALYZE");
  const auto before = kept.rows_read("change_log");
  std::vector<std::string> ids{"event-7", "none", "event-4999"};
  {
    const auto target = kept.open(true);
    const auto found = target->find_events(key, ids).value();
    BOOST_REQUIRE(found.size() == 3U);
    BOOST_TEST(found[0]->id == "event-7");
    BOOST_TEST(!found[1]);
    BOOST_TEST(found[2]->id == "event-4999");
    BOOST_TEST(!target->find_events({"press", "ann", "s2"}, ids).value()[0]);
    BOOST_TEST(target->find_events(key, {}).value().empty());
  }
  // One row is read at the opening, to find the end of the log, and one per
  // call, to find the end of the session's.
  BOOST_TEST(kept.rows_read("change_log") - before <= 5);
}

BOOST_AUTO_TEST_CASE(of_events_with_one_hash_the_id_decides) {
  const place kept;
  kept.fill(3);
  kept.execute(fmt::format("UPDATE change_log SET event_hash = {}"
                           " WHERE event IS NOT NULL",
                           id_hash("event-2")));
  const auto target = kept.open();
  const std::vector<std::string> ids{"event-2", "event-3"};
  BOOST_TEST(target->find_events(key, ids).value()[0]->id == "event-2");
  // An id that is a JSON text in quotes, and one with a NUL.
  const std::vector<std::string> odd{"\"event\"", std::string("a\0b", 3)};
  std::vector<store_change> changes;
  for (std::size_t i = 0; i < odd.size(); ++i)
    changes.push_back(place::event_number(4 + static_cast<int>(i), odd[i]));
  BOOST_TEST(target->commit(changes).value().moved.empty());
  const auto found = target->find_events(key, odd).value();
  for (std::size_t i = 0; i < odd.size(); ++i)
    BOOST_TEST(found[i]->id == odd[i]);
}

// Half of the sessions have the same time, as after an import.
BOOST_AUTO_TEST_CASE(a_page_of_a_list_reads_what_it_holds) {
  constexpr int sessions = 20'000;
  constexpr std::size_t pages = 10;
  const place kept;
  {
    const auto target = kept.open();
    std::vector<store_change> changes;
    for (int i = 0; i < sessions; ++i) {
      auto said = std::make_shared<event>();
      said->timestamp = timestamp(
        std::chrono::seconds(1'700'000'000 + std::max(0, i - sessions / 2)));
      changes.push_back({.kind = change_kind::create,
                         .owner = {"press", "ann", fmt::format("s{:05}", i)},
                         .event = std::move(said),
                         .session_revision = 0,
                         .user_revision = {},
                         .app_revision = {}});
    }
    BOOST_REQUIRE(target->commit(changes).value().moved.empty());
    target->close().value();
  }
  const auto moment = timestamp(std::chrono::seconds(1'700'000'000));
  for (const bool of_user : {false, true})
    for (const bool at_one_time : {false, true}) {
      row_query query{.app = "press", .user = {}, .behind = {}};
      if (of_user)
        query.user = "ann";
      if (at_one_time)
        query.behind = {moment, "ann", "s05000"};
      const auto before = kept.rows_read("scopes");
      std::set<std::string> listed;
      {
        const auto target = kept.open();
        for (std::size_t page = 0; page < pages; ++page) {
          const auto rows = target->list(query).value();
          BOOST_REQUIRE(rows.size() == query.limit);
          for (const auto& row : rows)
            listed.insert(row.key.id);
          query.behind
            = {rows.back().last_update_time, "ann", rows.back().key.id};
        }
      }
      BOOST_TEST(listed.size() == pages * query.limit);
      BOOST_TEST(*listed.begin() == (at_one_time ? "s05001" : "s19000"));
      // Each session is read with its user and app; the bound leaves room for
      // the ends of ranges.
      const auto read = kept.rows_read("scopes") - before;
      BOOST_TEST(read <= static_cast<std::int64_t>(pages * query.limit * 4),
                 read << " rows; of a user: " << of_user
                      << ", at one time: " << at_one_time);
    }
}

BOOST_AUTO_TEST_CASE(an_import_is_one_commit_in_constant_memory) {
  constexpr int events = 20'000;
  const place kept;
  const auto target = kept.open();
  auto said = std::make_shared<event>(
    *event_with("imported", {{"count", 1}, {"user:n", 1}, {"app:n", 2}}));
  said->content = user_text(std::string(10'000, 'x'));
  std::vector<store_change> changes{create_session(session)};
  for (int i = 1; i <= events; ++i)
    changes.push_back({.kind = change_kind::append,
                       .owner = session,
                       .event = said,
                       .session_revision = static_cast<std::uint64_t>(i),
                       .user_revision = {},
                       .app_revision = {}});
  const auto before = kilobytes_at_most();
  BOOST_TEST(target->commit(changes).value().moved.empty());
  BOOST_TEST(kilobytes_at_most() - before < 64 * 1024);
  // The keys of the damaged row for user and app have no effect.
  const auto check_scopes = [&] {
    for (const auto& owner : {user, app}) {
      const auto scope = target->load_scope(owner).value();
      BOOST_TEST(scope->revision == 0U);
      BOOST_TEST(scope->keys.find("n") == nullptr);
    }
    BOOST_TEST(target->check({}).value().empty());
  };
  check_scopes();
  const auto loaded = target->load_session(key, {}).value();
  BOOST_TEST(loaded->scope.revision == static_cast<std::uint64_t>(events));
  BOOST_TEST(count_in(loaded->scope.keys) == 1);
  static_cast<void>(
    target->list({.app = "press", .user = {}, .behind = {}}).value());
  check_scopes();
  store_change removal = create_session(session);
  removal.kind = change_kind::remove;
  removal.session_revision.reset();
  BOOST_TEST(target->commit({&removal, 1}).value().moved.empty());
  check_scopes();
  BOOST_TEST(
    shared_server().ask(fmt::format(
      "SELECT count(*) FROM {}.change_log WHERE kind < 3", kept.schema))
    == "0");
}

BOOST_AUTO_TEST_SUITE_END()
