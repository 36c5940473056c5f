// Forks in a SQLite file: the events that they share, their removal and damage
// to them.

#include "sqlite_file.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

namespace {

const session_key fork_key{"press", "ann", "fork"};
const session_key other_key{"press", "ann", "other"};

owner_name owner(const session_key& key) {
  return {key.app, key.user, key.id};
}

store_change event_number(std::uint64_t number, const session_key& key) {
  store_change made;
  made.owner = owner(key);
  made.event = make_event(key.id + std::to_string(number), {{"n", number}});
  made.session_revision = number;
  return made;
}

store_change fork_of(const session_key& key,
                     const session_key& parent,
                     std::uint64_t revision) {
  auto made = creation(key);
  made.event = make_event("", {{"n", revision}});
  made.session_revision = revision;
  made.past = shared_past{parent.id, revision};
  return made;
}

store_change removal(const session_key& key) {
  store_change made;
  made.kind = change_kind::remove;
  made.owner = owner(key);
  return made;
}

struct forked_file : sqlite_file {
  void commit(const std::vector<store_change>& changes) const {
    const auto opened = open();
    BOOST_TEST(opened->commit(changes).value().moved.empty());
    BOOST_TEST(opened->close().has_value());
  }

  // A session with so many events.
  void make_parent(std::uint64_t count) const {
    std::vector<store_change> changes{creation(ann)};
    for (std::uint64_t number = 1; number <= count; ++number)
      changes.push_back(event_number(number, ann));
    commit(changes);
  }

  std::int64_t rows(const std::string& table) const {
    return number("SELECT count(*) FROM " + table);
  }

  std::size_t events(const session_key& key) const {
    return open()->load_events(key, 1, 100'000).value().size();
  }

  std::vector<std::string> findings() const {
    return open()->check({}).value();
  }
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(sqlite_forks, forked_file)

// The log gets two rows for the fork: its creation and its own event.
BOOST_AUTO_TEST_CASE(a_fork_copies_no_events) {
  make_parent(2'000);
  const auto before = rows("log");
  commit({fork_of(fork_key, ann, 1'900), event_number(1'901, fork_key)});
  BOOST_TEST(rows("log") == before + 2);
  BOOST_TEST(rows("pasts") == 1);
  BOOST_TEST(events(fork_key) == 1'901U);
}

BOOST_AUTO_TEST_CASE(a_removed_parent_keeps_the_shared_events_alone) {
  make_parent(2'000);
  commit({fork_of(fork_key, ann, 300)});
  commit({removal(ann)});
  BOOST_TEST(number("SELECT count(*) FROM log WHERE event IS NOT NULL") == 300);
  BOOST_TEST(number("SELECT count(*) FROM scopes WHERE app='' AND session<>''")
             == 1);
  BOOST_TEST(rows("purges") == 0);
  BOOST_TEST(number("SELECT max(revision) FROM snapshots WHERE scope=(SELECT "
                    "past FROM pasts)")
             <= 300);
  BOOST_TEST(events(fork_key) == 300U);
  BOOST_TEST(findings().empty());
}

// The newest fork goes first; the past then shrinks to the events of the other.
BOOST_AUTO_TEST_CASE(a_past_goes_with_its_last_fork) {
  make_parent(1'000);
  commit({fork_of(fork_key, ann, 600), fork_of(other_key, ann, 200)});
  commit({removal(ann)});
  BOOST_TEST(number("SELECT count(*) FROM log WHERE event IS NOT NULL") == 600);
  commit({removal(fork_key)});
  BOOST_TEST(number("SELECT count(*) FROM log WHERE event IS NOT NULL") == 200);
  BOOST_TEST(events(other_key) == 200U);
  BOOST_TEST(findings().empty());
  commit({removal(other_key)});
  BOOST_TEST(number("SELECT count(*) FROM log WHERE event IS NOT NULL") == 0);
  for (const auto* table : {"pasts",
                            "snapshots",
                            "settled_entries",
                            "fresh_entries",
                            "state",
                            "purges"})
    BOOST_TEST(rows(table) == 0, table);
  BOOST_TEST(number("SELECT count(*) FROM scopes WHERE session<>''") == 0);
  BOOST_TEST(findings().empty());
}

BOOST_AUTO_TEST_CASE(a_chain_of_pasts_goes_with_its_last_fork) {
  make_parent(10);
  commit({fork_of(fork_key, ann, 5), event_number(6, fork_key)});
  commit({fork_of(other_key, fork_key, 6), event_number(7, other_key)});
  commit({removal(ann), removal(fork_key)});
  BOOST_TEST(events(other_key) == 7U);
  BOOST_TEST(findings().empty());
  commit({removal(other_key)});
  BOOST_TEST(rows("pasts") == 0);
  BOOST_TEST(number("SELECT count(*) FROM log WHERE event IS NOT NULL") == 0);
}

BOOST_AUTO_TEST_CASE(a_removed_user_leaves_no_past) {
  make_parent(10);
  commit({fork_of(fork_key, ann, 5), event_number(6, fork_key)});
  commit({removal(ann)});
  store_change gone;
  gone.kind = change_kind::remove_user;
  gone.owner = {ann.app, ann.user};
  commit({gone});
  BOOST_TEST(rows("pasts") == 0);
  BOOST_TEST(number("SELECT count(*) FROM log WHERE event IS NOT NULL") == 0);
  BOOST_TEST(number("SELECT count(*) FROM scopes WHERE session<>''") == 0);
  BOOST_TEST(findings().empty());
}

// Folding in small batches puts the rows away while the fork is there.
BOOST_AUTO_TEST_CASE(rows_that_are_not_folded_are_shared) {
  const auto opened = open(5);
  std::vector<store_change> changes{creation(ann)};
  const auto commit_now = [&] {
    BOOST_TEST(opened->commit(changes).value().moved.empty());
    changes.clear();
  };
  commit_now();
  for (std::uint64_t number = 1; number <= 40; ++number) {
    changes = {event_number(number, ann)};
    commit_now();
    const session_key key{"press", "ann", "f" + std::to_string(number)};
    changes = {fork_of(key, ann, number)};
    commit_now();
    BOOST_TEST(opened->load_events(key, 1, 100).value().size() == number);
  }
  changes = {removal(ann)};
  commit_now();
  for (std::uint64_t number = 1; number <= 40; ++number) {
    const session_key key{"press", "ann", "f" + std::to_string(number)};
    const auto loaded = opened->load_session(key, {}).value().value();
    BOOST_TEST(loaded.events.size() == number);
    BOOST_TEST(loaded.scope.revision == number);
  }
  BOOST_TEST(opened->check({}).value().empty());
}

// Another process reports the removed parent by its name, and never a past.
BOOST_AUTO_TEST_CASE(other_processes_are_told_names) {
  const auto mine = open();
  const auto theirs = open();
  const std::vector<store_change> first{
    creation(ann), event_number(1, ann), fork_of(fork_key, ann, 1)};
  BOOST_TEST(mine->commit(first).value().moved.empty());
  theirs->changed_elsewhere().value();
  BOOST_TEST(mine->commit(std::array{event_number(2, ann), removal(ann)})
               .value()
               .moved.empty());
  for (const auto& told : theirs->changed_elsewhere().value())
    BOOST_TEST(!told.owner.app.empty());
  BOOST_TEST(theirs->load_events(fork_key, 1, 9).value().size() == 1U);
}

BOOST_DATA_TEST_CASE(damage_to_a_past_is_found,
                     data::make(std::vector<std::string>{
                       "DELETE FROM scopes WHERE app=''",
                       "DELETE FROM log WHERE session_revision=3",
                       "UPDATE pasts SET revision=7",
                       "UPDATE pasts SET revision=7,sum=row_sum(scope,past,7)",
                       "DELETE FROM fresh_entries WHERE number=2",
                       "DELETE FROM pasts"}),
                     damage) {
  make_parent(10);
  commit({fork_of(fork_key, ann, 5), event_number(6, fork_key)});
  commit({removal(ann)});
  BOOST_TEST(findings().empty());
  execute("INSERT OR REPLACE INTO fresh_entries SELECT * FROM settled_entries;"
          "DELETE FROM settled_entries");
  execute(damage);
  BOOST_TEST(!findings().empty());
  const auto read = open()->load_events(fork_key, 1, 100);
  if (damage != "DELETE FROM pasts")
    BOOST_TEST(code_of(read) == "corrupt");
}

BOOST_AUTO_TEST_CASE(a_past_that_no_session_uses_is_found) {
  make_parent(3);
  execute("UPDATE scopes SET app='',user='',session='9',sum=row_sum('','','9',"
          "revision,updated,keys) WHERE session<>''");
  const auto found = findings();
  BOOST_TEST_REQUIRE(found.size() == 1U);
  BOOST_TEST(found[0].find("is kept for forks, but has none")
             != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_fork_of_a_long_session_is_small) {
  make_parent(50'000);
  const auto before = number("PRAGMA page_count");
  std::vector<store_change> forks;
  for (int count = 0; count < 100; ++count)
    forks.push_back(
      fork_of({"press", "ann", "f" + std::to_string(count)}, ann, 49'000));
  commit(forks);
  // A kilobyte each: 25 pages.
  BOOST_TEST(number("PRAGMA page_count") <= before + 25);
}

BOOST_AUTO_TEST_SUITE_END()
