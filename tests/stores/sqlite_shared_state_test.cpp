// The state of users and apps as it was when a session came to a revision.

#include "sqlite_file.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

namespace {

// One revision of a session, and the counts of its user and app then.
struct moment {
  session_key session;
  std::uint64_t revision = 0;
  std::int64_t user = 0;
  std::int64_t app = 0;
};

struct counted_file : sqlite_file {
  const std::vector<session_key> sessions
    = {{"press", "ann", "s1"}, {"press", "ann", "s2"}, {"press", "ben", "s1"}};
  std::vector<moment> moments;

  std::unique_ptr<store> open_fast(std::int64_t fold_rows) const {
    return detail::open_sqlite_store(
             {.file = file,
              .options = {.durability = durability::none},
              .fold_rows = fold_rows})
      .value();
  }

  // The sessions count in turn, up to `count` changes in all, in one commit.
  void count_to(store& on, std::int64_t count) {
    std::vector<store_change> changes;
    if (moments.empty())
      for (const auto& each : sessions)
        changes.push_back(creation(each));
    for (auto next = std::ssize(moments); next < count; ++next) {
      const auto& key = sessions[static_cast<std::size_t>(next) % 3];
      const auto of_user
        = key.user == "ann" ? next / 3 * 2 + next % 3 + 1 : next / 3 + 1;
      moments.push_back(
        {key, static_cast<std::uint64_t>(next / 3 + 1), of_user, next + 1});
      changes.push_back(change_to(moments.back()));
    }
    BOOST_TEST_REQUIRE(on.commit(changes).value().moved.empty());
  }

  static store_change change_to(const moment& at) {
    store_change change;
    change.owner = {at.session.app, at.session.user, at.session.id};
    change.event = make_event("e" + std::to_string(at.app),
                              {{"user:n", at.user}, {"app:n", at.app}});
    change.session_revision = at.revision;
    change.user_revision = static_cast<std::uint64_t>(at.user);
    change.app_revision = static_cast<std::uint64_t>(at.app);
    return change;
  }

  static std::string
  shown(const moment& at, std::int64_t user, std::int64_t app) {
    return at.session.user + "/" + at.session.id + " "
           + std::to_string(at.revision) + ": " + std::to_string(user) + " "
           + std::to_string(app);
  }

  // Compares moments of all sessions, and that of each creation.
  void expect_all(store& on) const {
    for (std::size_t index = 0; index < moments.size(); index += 13) {
      const auto& at = moments[index];
      const auto found
        = on.load_shared_state_at(at.session, at.revision).value();
      BOOST_TEST_REQUIRE(found.has_value());
      BOOST_TEST(
        shown(at, counter::count(found->user), counter::count(found->app))
        == shown(at, at.user, at.app));
    }
    for (const auto& each : sessions) {
      const auto made = on.load_shared_state_at(each, 0).value().value();
      BOOST_TEST(made.user.size() + made.app.size() == 0);
    }
  }
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(sqlite_shared_state, counted_file)

// Folded in runs of a few rows, in one run, and not folded yet.
BOOST_DATA_TEST_CASE(each_revision_has_its_user_and_app,
                     data::make({7, 256, 4'096}),
                     fold_rows) {
  const auto made = open_fast(fold_rows);
  for (std::int64_t count = 20; count <= 1'500; count += 20)
    count_to(*made, count);
  expect_all(*made);
  BOOST_TEST(made->check({}).value().empty());
  made->close().value();
  const auto again = open();
  expect_all(*again);
  BOOST_TEST(again->check({}).value().empty());
}

BOOST_AUTO_TEST_CASE(what_is_not_there_has_none) {
  const auto made = open_fast(7);
  count_to(*made, 30);
  BOOST_TEST(!made->load_shared_state_at({"press", "ann", "none"}, 0).value());
  BOOST_TEST(!made->load_shared_state_at(ann, 11).value());
}

// Snapshots make the distance short: the rows before the newest one are not
// read.
BOOST_AUTO_TEST_CASE(a_read_starts_from_the_nearest_snapshot_of_the_app) {
  const auto made = open_fast(600);
  for (std::int64_t count = 600; count <= 2'400; count += 600)
    count_to(*made, count);
  made->close().value();
  const auto app
    = number("SELECT id FROM scopes WHERE app='press' AND user=''");
  BOOST_TEST(
    number("SELECT count(*) FROM snapshots WHERE scope=" + std::to_string(app))
    >= 3);
  execute("DELETE FROM log WHERE app_revision=100");
  const auto opened = open();
  const auto at = [&opened, this](std::size_t change) {
    const auto& when = moments[change - 1];
    return opened->load_shared_state_at(when.session, when.revision);
  };
  BOOST_TEST(counter::count(at(99).value()->app) == 99);
  BOOST_TEST(code_of(at(100)) == "corrupt");
  BOOST_TEST(counter::count(at(2'000).value()->app) == 2'000);
}

// Changes that were folded in an older layout have no entries.
BOOST_DATA_TEST_CASE(changes_of_an_older_layout_are_found,
                     data::make({30, 1'500}),
                     later) {
  auto made = open_fast(7);
  count_to(*made, 1'000);
  made->close().value();
  execute("DELETE FROM snapshots WHERE scope IN"
          " (SELECT id FROM scopes WHERE session='')");
  set_back_to(6);
  made = open_fast(7);
  for (std::int64_t count = 1'000; count < 1'000 + later; count += 10)
    count_to(*made, count + 10);
  made->close().value();
  BOOST_TEST(number("SELECT count(*) FROM shared_entries") >= 3);
  made = open_fast(7);
  expect_all(*made);
  BOOST_TEST(made->check({}).value().empty());
}

// Two processes fold the same file.
BOOST_AUTO_TEST_CASE(several_processes_fold_without_a_gap) {
  const auto first = open_fast(16);
  const auto second = open_fast(16);
  for (std::int64_t count = 5; count <= 600; count += 5)
    count_to(count % 2 == 0 ? *first : *second, count);
  expect_all(*first);
  expect_all(*second);
  BOOST_TEST(first->check({}).value().empty());
}

BOOST_AUTO_TEST_CASE(a_removed_user_leaves_no_entries) {
  const auto rows_of_ann = [](const std::string& table) {
    return "SELECT count(*) FROM " + table
           + " WHERE scope=(SELECT id FROM scopes WHERE user='ann' AND"
             " session='')";
  };
  const auto made = open_fast(64);
  for (std::int64_t count = 20; count <= 900; count += 20)
    count_to(*made, count);
  BOOST_TEST(number(rows_of_ann("shared_entries")) > 0);
  BOOST_TEST(number(rows_of_ann("snapshots")) > 0);
  store_change gone;
  gone.kind = change_kind::remove_user;
  gone.owner = {"press", "ann"};
  made->commit(std::array{gone}).value();
  made->close().value();
  open()->close().value(); // Deletes the rest.
  for (const std::string table : {"shared_entries", "snapshots"})
    BOOST_TEST(number("SELECT count(*) FROM " + table
                      + " WHERE scope NOT IN (SELECT id FROM scopes)")
               == 0);
  const auto opened = open();
  for (const auto& at : moments)
    if (at.session.user == "ben")
      BOOST_TEST(
        counter::count(
          opened->load_shared_state_at(at.session, at.revision).value()->app)
        == at.app);
  BOOST_TEST(opened->check({}).value().empty());
}

BOOST_DATA_TEST_CASE(
  damage_of_entries_is_told,
  data::make(std::vector<std::string>{
    "UPDATE shared_entries SET logs='[1]'",
    "UPDATE shared_entries SET number=number+1",
    "UPDATE shared_entries SET logs='7',"
    "sum=row_sum(scope,log,number,'7')",
    "UPDATE shared_entries SET number=number+1,"
    "sum=row_sum(scope,log,number+1,logs)",
    "DELETE FROM shared_entries WHERE number BETWEEN 50 AND 150",
    "DELETE FROM shared_entries WHERE number>80 AND scope="
    "(SELECT id FROM scopes WHERE user='ben' AND session='')"}),
  damage) {
  const auto made = open_fast(16);
  for (std::int64_t count = 20; count <= 300; count += 20)
    count_to(*made, count);
  made->close().value();
  execute(damage);
  const auto opened = open();
  std::size_t told = 0;
  for (const auto& at : moments) {
    const auto found = opened->load_shared_state_at(at.session, at.revision);
    if (!found)
      BOOST_TEST(code_of(found) == "corrupt");
    else
      BOOST_TEST(
        shown(at, counter::count((*found)->user), counter::count((*found)->app))
        == shown(at, at.user, at.app));
    told += found ? 0 : 1;
  }
  BOOST_TEST(told > 0);
  BOOST_TEST(!opened->check({}).value().empty());
}

// Only the first prefix of a key names its scope.
BOOST_AUTO_TEST_CASE(a_snapshot_has_keys_that_look_prefixed) {
  const auto made = open_fast(64);
  made->commit(std::array{creation(ann)}).value();
  for (std::uint64_t number = 1; number <= 1'200; ++number) {
    store_change change;
    change.owner = {"press", "ann", "s1"};
    change.event = make_event("e" + std::to_string(number),
                              {{"app:user:x", number}, {"app:temp:y", 1}});
    change.session_revision = change.app_revision = number;
    made->commit(std::array{change}).value();
  }
  BOOST_TEST(number("SELECT count(*) FROM snapshots") > 0);
  const auto found = made->load_shared_state_at(ann, 1'100).value().value();
  BOOST_TEST_REQUIRE(found.app.size() == 2U);
  BOOST_TEST(found.app.find("user:x")->data() == 1'100);
  BOOST_TEST(made->check({}).value().empty());
}

// Its own first revision is made when the session is forked.
BOOST_AUTO_TEST_CASE(a_fork_has_the_state_of_its_parents_time) {
  const auto made = open_fast(16);
  for (std::int64_t count = 20; count <= 300; count += 20)
    count_to(*made, count);
  auto fork = creation({"press", "ann", "fork"});
  fork.past = shared_past{"s1", 50};
  fork.session_revision = 50;
  BOOST_TEST_REQUIRE(made->commit(std::array{fork}).value().moved.empty());
  for (std::int64_t count = 320; count <= 600; count += 20)
    count_to(*made, count);
  const auto shown_at = [&made](std::uint64_t revision) {
    const auto found
      = made->load_shared_state_at({"press", "ann", "fork"}, revision).value();
    BOOST_TEST_REQUIRE(found.has_value());
    return std::pair(counter::count(found->user), counter::count(found->app));
  };
  const auto compare = [&] {
    for (const auto& at : moments)
      if (at.session == sessions[0] && at.revision < 50)
        BOOST_TEST((shown_at(at.revision) == std::pair(at.user, at.app)));
    BOOST_TEST(
      (shown_at(50) == std::pair<std::int64_t, std::int64_t>(200, 300)));
  };
  compare();
  store_change gone;
  gone.kind = change_kind::remove;
  gone.owner = {"press", "ann", "s1"};
  BOOST_TEST_REQUIRE(made->commit(std::array{gone}).value().moved.empty());
  compare();
}

BOOST_AUTO_TEST_SUITE_END()
