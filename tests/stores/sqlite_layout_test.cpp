// Files of older layouts are migrated; files of newer layouts are refused.

#include "sqlite_file.hpp"
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <string>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

BOOST_FIXTURE_TEST_SUITE(sqlite_layout, sqlite_file)

BOOST_AUTO_TEST_CASE(a_newer_layout_is_refused) {
  fill(1);
  execute("PRAGMA user_version=10");
  BOOST_TEST(refusal() == "corrupt");
}

// Layout 1 has no fresh entries, 2 no sums, 3 no marks, 4 no snapshots, 5 no
// forks, 6 no entries of apps and users, 7 no trims, 8 no open runs.
BOOST_DATA_TEST_CASE(an_older_layout_is_brought_forward,
                     data::xrange(1, 9),
                     version) {
  fill(100);
  const auto before
    = ids_of(open()->load_session(ann, {}).value().value().events);
  set_back_to(version);
  const auto opened = open();
  BOOST_TEST(ids_of(opened->load_session(ann, {}).value().value().events)
             == before);
  BOOST_TEST(opened->check({}).value().empty());
  BOOST_TEST(number("PRAGMA user_version") == 9);
  if (version < 4)
    BOOST_TEST(number("SELECT count(*) FROM log WHERE mark IS NOT NULL") == 1);
  const auto past = opened->load_session_at(ann, 50, 1).value().value();
  BOOST_TEST(past.scope.keys.find("n")->data() == 50);
}

// The older program reads this table before each write that follows another
// program's.
BOOST_DATA_TEST_CASE(a_connected_program_of_an_older_layout_writes_no_more,
                     data::xrange(3, 9),
                     version) {
  const std::string table = version == 3   ? "progress"
                            : version == 4 ? "folding"
                            : version == 5 ? "folded_rows"
                            : version == 6 ? "fold_progress"
                            : version == 7 ? "fold_position"
                                           : "fold_marks";
  fill(10);
  set_back_to(version);
  sqlite3* older = nullptr;
  BOOST_REQUIRE(sqlite3_open(file.c_str(), &older) == SQLITE_OK);
  sqlite3_stmt* look = nullptr;
  const auto sql = "SELECT name,value,sum FROM " + table;
  BOOST_REQUIRE(sqlite3_prepare_v2(older, sql.c_str(), -1, &look, nullptr)
                == SQLITE_OK);
  BOOST_TEST(sqlite3_step(look) == SQLITE_ROW);
  sqlite3_reset(look);
  open();
  BOOST_TEST(sqlite3_step(look) == SQLITE_ERROR);
  BOOST_TEST(std::string(sqlite3_errmsg(older)) == "no such table: " + table);
  sqlite3_finalize(look);
  sqlite3_close(older);
}

BOOST_AUTO_TEST_SUITE_END()
