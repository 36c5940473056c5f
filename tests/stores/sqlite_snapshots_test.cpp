// States of long sessions that folding keeps, for reads at earlier revisions.

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

BOOST_FIXTURE_TEST_SUITE(sqlite_snapshots, sqlite_file)

namespace {

// A session with these keys, and `count` events that set `n` to their number,
// in one commit.
void fill_at_once(const sqlite_file& on, const json& keys, int count) {
  const auto made
    = open_sqlite_store(on.file, {.durability = durability::none}).value();
  std::vector<store_change> changes{creation(ann)};
  changes[0].event = make_event("", keys);
  for (int number = 1; number <= count; ++number) {
    store_change next;
    next.owner = changes[0].owner;
    next.event = make_event("e" + std::to_string(number), {{"n", number}});
    next.session_revision = static_cast<std::uint64_t>(number);
    changes.push_back(std::move(next));
  }
  BOOST_REQUIRE(made->commit(changes).value().moved.empty());
  made->close().value();
}

result<std::int64_t> count_at(store& kept, std::uint64_t revision) {
  const auto past = kept.load_session_at(ann, revision, 0);
  if (!past)
    return past.error();
  return counter::count(past->value().scope.keys);
}

} // namespace

BOOST_AUTO_TEST_CASE(a_read_starts_from_the_nearest_snapshot) {
  fill_at_once(*this, json::object(), 1'200);
  BOOST_TEST(number("SELECT count(*) FROM snapshots") == 2);
  execute("DELETE FROM log WHERE session_revision=100");
  const auto opened = open();
  BOOST_TEST(count_at(*opened, 99).value() == 99);
  BOOST_TEST(code_of(count_at(*opened, 100)) == "corrupt");
  for (const std::uint64_t revision : {1'050U, 1'100U, 1'200U})
    BOOST_TEST(count_at(*opened, revision).value()
               == static_cast<std::int64_t>(revision));
}

BOOST_AUTO_TEST_CASE(short_sessions_have_none) {
  fill_at_once(*this, json::object(), 500);
  BOOST_TEST(number("SELECT count(*) FROM snapshots") == 0);
}

// A session with a large state gets them after more revisions: 64 bytes for
// each one since.
BOOST_AUTO_TEST_CASE(a_large_state_makes_them_rare) {
  auto keys = json::object();
  for (int key = 0; key < 1'000; ++key)
    keys["k" + std::to_string(key)] = std::string(90, 'x');
  fill_at_once(*this, keys, 2'500); // 100,000 bytes need 2,048 revisions.
  BOOST_TEST(number("SELECT count(*) FROM snapshots") == 1);
  BOOST_TEST(number("SELECT revision FROM snapshots") >= 2'048);
  BOOST_TEST(count_at(*open(), 1'000).value() == 1'000);
  BOOST_TEST(count_at(*open(), 2'500).value() == 2'500);
}

// A damaged row of the state is not copied: the copy would be sound.
BOOST_DATA_TEST_CASE(damage_is_not_copied,
                     data::make(std::vector<std::string>{
                       "UPDATE state SET value='7' WHERE key='k'",
                       "DELETE FROM state WHERE key='k'"}),
                     damage) {
  const auto made = open(1);
  auto first = creation(ann);
  first.event = make_event("", {{"k", 1}});
  made->commit(std::array{first}).value();
  store_change next = first;
  next.kind = change_kind::append;
  const auto append_until = [&](std::uint64_t last) {
    for (auto number = next.session_revision.value() + 1; number <= last;
         ++number) {
      next.event = make_event("e" + std::to_string(number), json::object());
      next.session_revision = number;
      made->commit(std::array{next}).value();
    }
  };
  append_until(300);
  execute(damage);
  append_until(1'100);
  made->close().value();
  BOOST_TEST(number("SELECT count(*) FROM snapshots") == 0);
}

BOOST_DATA_TEST_CASE(a_damaged_snapshot_is_told,
                     data::make(std::vector<std::string>{
                       "UPDATE snapshots SET keys='{}'",
                       "UPDATE snapshots SET updated=updated+1",
                       "UPDATE snapshots SET revision=revision-1"}),
                     damage) {
  fill_at_once(*this, json::object(), 700);
  execute(damage);
  const auto opened = open();
  BOOST_TEST(code_of(count_at(*opened, 700)) == "corrupt");
  BOOST_TEST(!opened->check({}).value().empty());
}

BOOST_AUTO_TEST_CASE(a_snapshot_of_no_revision_is_found_by_the_check) {
  fill_at_once(*this, json::object(), 700);
  execute("UPDATE snapshots SET revision=900,"
          "sum=row_sum(scope,900,updated,keys)");
  BOOST_TEST(open()->check({}).value().size() == 1U);
}

// With a right checksum, only the comparison with the log can tell.
BOOST_AUTO_TEST_CASE(a_wrong_snapshot_is_found_by_the_check) {
  fill_at_once(*this, json::object(), 700);
  execute("UPDATE snapshots SET keys='{\"n\":7}',"
          "sum=row_sum(scope,revision,updated,'{\"n\":7}')");
  const auto found = open()->check({}).value();
  BOOST_REQUIRE(found.size() == 1U);
  BOOST_TEST(found[0].find("differs from the replay of its log")
             != std::string::npos);
}

BOOST_AUTO_TEST_CASE(they_go_with_their_session) {
  fill_at_once(*this, json::object(), 700);
  {
    const auto made = open();
    store_change removed;
    removed.kind = change_kind::remove;
    removed.owner = {ann.app, ann.user, ann.id};
    made->commit(std::array{removed}).value();
    made->close().value();
  }
  BOOST_TEST(number("SELECT count(*) FROM snapshots") == 0);
  BOOST_TEST(open()->check({}).value().empty());
}

BOOST_AUTO_TEST_SUITE_END()
