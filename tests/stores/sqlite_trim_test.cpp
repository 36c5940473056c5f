// Trims in a SQLite file: rows that go and stay, and damage.

#include "troupe/stores/conformance/run.hpp"

#include "sqlite_file.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

namespace {

const session_key other{"press", "ann", "s2"};

/// A file with a session of ten events, each of which also counts in `user:n`.
struct trimmed_file : sqlite_file {
  trimmed_file() : kept(open()) {
    commit(make.create(ann, {{"n", 0}}));
    for (int number = 1; number <= 10; ++number)
      commit(make.append(ann, {{"n", number}, {"user:n", number}}));
  }

  void commit(store_change change) {
    BOOST_TEST_REQUIRE(kept->commit({&change, 1}).value().moved.empty());
  }

  void trim(int revision) {
    commit(
      make.trim(ann, static_cast<std::uint64_t>(revision), {{"n", revision}}));
  }

  // Folds the whole log, and deletes the rows of scopes in `purges`.
  void reopen() {
    kept->close().value();
    kept.reset();
    kept = open();
  }

  std::int64_t bodies() const {
    return number("SELECT count(*) FROM log WHERE body IS NOT NULL");
  }

  std::vector<std::string> findings() { return kept->check({}).value(); }

  conformance::change_maker make;
  std::unique_ptr<store> kept;
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(sqlite_trims, trimmed_file)

BOOST_AUTO_TEST_CASE(events_leave_the_file_and_shares_of_others_stay) {
  trim(7);
  reopen();
  BOOST_TEST(bodies() == 3);
  BOOST_TEST(number("SELECT count(*) FROM log WHERE event IS NOT NULL") == 3);
  // Each event has a row of the user, which has lost the session's keys.
  BOOST_TEST(number("SELECT count(*) FROM log WHERE user IS NOT NULL") == 10);
  BOOST_TEST(number("SELECT count(*) FROM log WHERE delta LIKE '%\"n\"%'")
             == 4);
  BOOST_TEST(number("SELECT count(*) FROM purges") == 0);
  BOOST_TEST(findings().empty());
  trim(9);
  reopen();
  BOOST_TEST(bodies() == 1);
  BOOST_TEST(findings().empty());
  commit(make.remove(ann));
  reopen();
  BOOST_TEST(number("SELECT count(*) FROM first_states") == 0);
  BOOST_TEST(bodies() == 0);
  BOOST_TEST(findings().empty());
}

BOOST_AUTO_TEST_CASE(later_commits_delete_them_in_slices) {
  kept->close().value();
  kept = open(5);
  for (int number = 0; number < 600; ++number)
    commit(make.append(ann));
  commit(make.trim(ann, 590, {{"n", 10}}));
  int commits = 0;
  while (bodies() > 20 + commits && commits < 500) {
    commit(make.append(ann));
    ++commits;
  }
  BOOST_TEST(commits > 1);
  BOOST_TEST(commits < 500);
  for (const auto& found : findings())
    BOOST_ERROR(found);
}

BOOST_AUTO_TEST_CASE(shared_events_leave_with_their_last_fork) {
  commit(make.fork(other, ann.id, 4, {{"n", 4}}));
  trim(7);
  reopen();
  BOOST_TEST(bodies() == 7); // 1 to 4 of the fork, and 8 to 10.
  BOOST_TEST(findings().empty());
  commit(make.remove(other));
  reopen();
  BOOST_TEST(bodies() == 3);
  BOOST_TEST(findings().empty());
}

// The state of user and app at the oldest revision is still found.
BOOST_AUTO_TEST_CASE(shared_state_is_known_from_the_oldest_revision_on) {
  trim(7);
  const auto compare = [this] {
    BOOST_TEST(!kept->load_shared_state_at(ann, 6).value());
    for (const std::uint64_t revision : {7U, 8U, 10U}) {
      const auto found = kept->load_shared_state_at(ann, revision).value();
      BOOST_TEST_REQUIRE(found.has_value());
      BOOST_TEST(found->user.find("n")->data() == revision);
    }
  };
  compare();
  reopen();
  compare();
}

BOOST_AUTO_TEST_CASE(an_opened_store_of_another_program_says_gone) {
  const auto reader = open_sqlite_store(file, {.read_only = true}).value();
  BOOST_TEST(reader->load_events(ann, 1, 10).value().size() == 10U);
  trim(7);
  BOOST_TEST(code_of(reader->load_events(ann, 1, 10)) == "gone");
  BOOST_TEST(reader->load_events(ann, 8, 10).value().size() == 3U);
  BOOST_TEST(reader->load_session(ann, {}).value().value().first_revision
             == 7U);
}

BOOST_DATA_TEST_CASE(damage_to_the_oldest_state_is_found,
                     data::make({"UPDATE first_states SET revision=6",
                                 "UPDATE first_states SET delta='{}'",
                                 "UPDATE first_states SET updated=0"}),
                     damage) {
  trim(7);
  reopen();
  kept->close().value();
  kept.reset();
  execute(damage);
  kept = open();
  BOOST_TEST(!findings().empty());
  BOOST_TEST(code_of(kept->load_session_at(ann, 8, 0)) == "corrupt");
}

BOOST_AUTO_TEST_CASE(a_missing_row_behind_it_is_found) {
  trim(7);
  reopen();
  kept->close().value();
  kept.reset();
  execute("DELETE FROM fresh_entries WHERE number=8;"
          "DELETE FROM settled_entries WHERE number=8");
  kept = open();
  BOOST_TEST(!findings().empty());
  BOOST_TEST(code_of(kept->load_events(ann, 8, 10)) == "corrupt");
}

BOOST_AUTO_TEST_CASE(a_trim_of_no_session_is_found) {
  kept->close().value();
  kept.reset();
  execute("INSERT INTO first_states VALUES(99,1,0,'',"
          "row_sum(99,1,0,''))");
  kept = open();
  BOOST_TEST(findings().size() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()
