// Exports of many and of long sessions, of sessions that change meanwhile, and
// of damaged ones.

#include "stored_sessions.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <sqlite3.h>

#include <map>
#include <string>
#include <vector>

namespace troupe::testing {

namespace {

namespace data = boost::unit_test::data;

struct long_session : stored_sessions {
  void fill(int count) const {
    run("create", s1);
    std::string input;
    for (int number = 1; number <= count; ++number)
      input += event_line(std::string(50, 'x'), {{"n", number}});
    run("append", s1, input);
  }

  void execute(const std::string& sql) const {
    sqlite3* database = nullptr;
    BOOST_REQUIRE(sqlite3_open((path() + "/troupe.db").c_str(), &database)
                  == SQLITE_OK);
    char* reason = nullptr;
    sqlite3_exec(database, sql.c_str(), nullptr, nullptr, &reason);
    BOOST_TEST_REQUIRE(reason == nullptr, reason);
    sqlite3_close(database);
  }
};

std::string entry_damage(const std::string& statement) {
  return statement.substr(0, statement.find('*')) + "fresh_entries"
         + statement.substr(statement.find('*') + 1) + ';'
         + statement.substr(0, statement.find('*')) + "settled_entries"
         + statement.substr(statement.find('*') + 1);
}

// A gap and a repetition, among the first events and behind them.
const std::vector<std::string> damages{
  entry_damage("DELETE FROM * WHERE number=3"),
  entry_damage("DELETE FROM * WHERE number=400"),
  entry_damage("UPDATE * SET log=log-1 WHERE number=3"),
  entry_damage("UPDATE * SET log=log-1 WHERE number=400"),
  "DELETE FROM log WHERE session_revision=3",
  "DELETE FROM log WHERE session_revision=400",
  "UPDATE log SET session_revision=3 WHERE session_revision=4",
};

} // namespace

BOOST_AUTO_TEST_SUITE(session_export)

BOOST_FIXTURE_TEST_CASE(a_long_session_is_exported_whole, long_session) {
  fill(700);
  const auto exported = run("export", s1);
  BOOST_TEST(exported.code == 0, exported.errors);
  auto shown = show("get", s1);
  shown.erase("revision");
  BOOST_TEST(parse_json(exported.output).value() == shown);
  BOOST_TEST(exported.output == to_text(shown) + '\n');
  BOOST_TEST(run("export", {"--app", "press"}).output == exported.output);
}

BOOST_DATA_TEST_CASE_F(long_session,
                       a_damaged_log_is_never_shown_as_a_good_one,
                       data::make(damages),
                       damage) {
  fill(500);
  execute(damage);
  for (const auto& done :
       {run("get", s1), run("export", s1), run("export", {"--app", "press"})}) {
    BOOST_TEST(done.code == 1);
    BOOST_TEST(done.errors.starts_with("error: corrupt: "), done.errors);
    BOOST_TEST(!contains(done.output, "\n"));
  }
}

// The export waits in its first page for its reader, and one of its last page
// moves in front meanwhile.
BOOST_FIXTURE_TEST_CASE(a_session_that_is_updated_meanwhile_is_exported_once,
                        stored_sessions) {
  std::string file;
  for (int number = 0; number < 350; ++number)
    file += to_text({{"id", "s" + std::to_string(number)},
                     {"appName", "press"},
                     {"userId", "ann"},
                     {"lastUpdateTime", number + 1},
                     {"state", {{"text", std::string(4'000, 'x')}}}})
            + '\n';
  const auto imported = run("import", {}, file);
  BOOST_TEST_REQUIRE(imported.code == 0, imported.errors);
  program exporting(command("export", {"--app", "press"}));
  BOOST_REQUIRE(exporting.read_until("\"s349\""));
  run("append", s1, event_line("moved", {{"n", 1}}));
  const auto done = exporting.wait();
  BOOST_TEST(done.code == 0, done.errors);
  std::map<std::string, int> times;
  for (const auto& each : objects(done.output)) {
    ++times[each["id"].get<std::string>()];
    if (each["id"] == "s1")
      BOOST_TEST(each["events"].size() == 1U);
  }
  BOOST_TEST(times.size() == 350U);
  for (const auto& [id, count] : times)
    BOOST_TEST(count == 1, id << " comes " << count << " times");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace troupe::testing
