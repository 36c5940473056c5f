// Forks and trimmed sessions in a PostgreSQL store: the events that they share,
// their removal and damage to them.

#include "troupe/stores/postgres/open.hpp"

#include "../outcome.hpp"
#include "counting_client.hpp"
#include "postgres_server.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
using namespace troupe::testing::counted;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(postgres_forks)

namespace {

postgres_server& shared_server() {
  static postgres_server server;
  return server;
}

const session_key fork_key{"press", "ann", "fork"};
const session_key other_key{"press", "ann", "other"};

owner_name owner(const session_key& of) {
  return {of.app, of.user, of.id};
}

store_change event_number(std::uint64_t number, const session_key& of) {
  store_change made;
  made.owner = owner(of);
  made.event
    = event_with(fmt::format("{}-{}", of.id, number), {{"count", number}});
  made.session_revision = number;
  return made;
}

store_change fork_of(const session_key& made_key,
                     const session_key& parent,
                     std::uint64_t revision) {
  auto made = create_session(owner(made_key));
  made.event = event_with("", {{"count", revision}});
  made.session_revision = revision;
  made.past = shared_past{parent.id, revision};
  return made;
}

store_change trim_to(std::uint64_t revision, const session_key& of = key) {
  store_change made;
  made.kind = change_kind::trim;
  made.owner = owner(of);
  made.event = event_with("", {{"count", revision}});
  made.kept = kept_past{revision};
  return made;
}

store_change removal(const session_key& of) {
  store_change made;
  made.kind = change_kind::remove;
  made.owner = owner(of);
  return made;
}

struct forked_place {
  std::string schema = [] {
    static int count = 0;
    return fmt::format("fork_{}", ++count);
  }();
  std::string url = shared_server().url(schema);
  std::unique_ptr<store> target = open_postgres_store(url).value();

  void commit(const std::vector<store_change>& changes) const {
    BOOST_TEST(target->commit(changes).value().moved.empty());
  }

  void make_parent(std::uint64_t count) const {
    std::vector<store_change> changes{create_session(session)};
    for (std::uint64_t number = 1; number <= count; ++number)
      changes.push_back(event_number(number, key));
    commit(changes);
  }

  std::string ask(const std::string& statements) const {
    return shared_server().ask(
      fmt::format("SET search_path = {}; {}", schema, statements));
  }

  std::int64_t events() const {
    return std::stoll(
      ask("SELECT count(*) FROM change_log WHERE event IS NOT NULL"));
  }

  void expect_sound() const {
    for (const auto& finding : target->check({}).value())
      BOOST_ERROR(finding);
  }

  // Counts the rows of sessions.
  std::int64_t rows() const {
    return std::stoll(
      ask("SELECT count(*) FROM change_log WHERE session IS NOT NULL"));
  }

  std::size_t events_of(const session_key& of) const {
    return target->load_events(of, 1, 100'000).value().size();
  }
};

} // namespace

BOOST_FIXTURE_TEST_CASE(a_past_goes_with_its_last_fork, forked_place) {
  make_parent(100);
  commit({fork_of(fork_key, key, 60),
          event_number(61, fork_key),
          fork_of(other_key, key, 20)});
  BOOST_TEST(events() == 101);
  commit({removal(key)});
  BOOST_TEST(events() == 61);
  BOOST_TEST(events_of(fork_key) == 61U);
  expect_sound();
  commit({removal(fork_key)});
  BOOST_TEST(events() == 20);
  BOOST_TEST(events_of(other_key) == 20U);
  expect_sound();
  commit({removal(other_key)});
  BOOST_TEST(events() == 0);
  BOOST_TEST(ask("SELECT count(*) FROM scopes WHERE session <> ''") == "0");
  expect_sound();
}

BOOST_FIXTURE_TEST_CASE(a_removed_user_leaves_no_past, forked_place) {
  make_parent(10);
  commit({fork_of(fork_key, key, 5), event_number(6, fork_key)});
  commit({fork_of(other_key, fork_key, 6)});
  commit({removal(key)});
  store_change gone;
  gone.kind = change_kind::remove_user;
  gone.owner = user;
  commit({gone});
  BOOST_TEST(events() == 0);
  BOOST_TEST(ask("SELECT count(*) FROM scopes WHERE session <> ''") == "0");
  expect_sound();
}

// Before and after the fold, also with more events than one statement reads.
BOOST_FIXTURE_TEST_CASE(a_long_past_is_read_in_pages, forked_place) {
  make_parent(20'000);
  commit({fork_of(fork_key, key, 19'000)});
  BOOST_TEST(events_of(fork_key) == 19'000U);
  target->close().value();
  target = open_postgres_store(url).value();
  BOOST_TEST(events_of(fork_key) == 19'000U);
  const auto loaded
    = target->load_session(fork_key, {.events_max = 9'000, .ids_max = SIZE_MAX})
        .value()
        .value();
  BOOST_TEST(loaded.events.size() == 9'000U);
  BOOST_TEST(loaded.id_hashes.size() == 19'000U);
  BOOST_TEST(loaded.events.front()->id == "s1-10001");
  const auto past
    = target->load_session_at(fork_key, 17'000, 2).value().value();
  BOOST_TEST(count_in(past.scope.keys) == 17'000);
  BOOST_TEST(past.events.back()->id == "s1-17000");
}

BOOST_DATA_TEST_CASE_F(forked_place,
                       damage_to_a_past_is_found,
                       data::make(std::vector<std::string>{
                         "DELETE FROM scopes WHERE app = ''",
                         "DELETE FROM change_log WHERE session_revision = 3",
                         "DELETE FROM change_log WHERE session_revision = 5"
                         " AND kind = 1",
                         "UPDATE scopes SET past = 99 WHERE past IS NOT NULL"}),
                       damage) {
  make_parent(10);
  commit({fork_of(fork_key, key, 5), event_number(6, fork_key)});
  commit({removal(key)});
  expect_sound();
  ask(damage);
  BOOST_TEST(!target->check({}).value().empty());
  BOOST_TEST(code_of(target->load_events(fork_key, 1, 100)) == "corrupt");
  BOOST_TEST(code_of(target->load_session(fork_key, {})) == "corrupt");
  BOOST_TEST(code_of(target->load_session_at(fork_key, 5, 9)) == "corrupt");
}

BOOST_FIXTURE_TEST_CASE(a_past_that_no_session_uses_is_found, forked_place) {
  make_parent(3);
  ask(
    "UPDATE scopes SET app = '', usr = '', session = '9' WHERE session <> ''");
  const auto found = target->check({}).value();
  BOOST_TEST_REQUIRE(found.size() == 1U);
  BOOST_TEST(found[0].find("is kept for forks, but has none")
             != std::string::npos);
}

// -- trims ----

// The rows are not folded when they are trimmed: the commit folds them first.
BOOST_FIXTURE_TEST_CASE(trimmed_rows_and_bodies_are_gone, forked_place) {
  std::vector<store_change> changes{create_session(session)};
  for (std::uint64_t number = 1; number <= 10; ++number) {
    changes.push_back(event_number(number, key));
    changes.back().event = event_with(fmt::format("s1-{}", number),
                                      {{"secret", number}, {"user:count", 7}});
    changes.back().user_revision = number;
  }
  auto trim = trim_to(8);
  trim.event = event_with("", {{"secret", 8}});
  changes.push_back(trim);
  commit(changes);
  const auto expect_gone = [&](int rows_left, int revisions_left) {
    BOOST_TEST(events() == rows_left);
    BOOST_TEST(rows() == revisions_left);
    for (const auto* const text : {"body IS NOT NULL", "delta ~ 'secret'"})
      BOOST_TEST(
        ask(fmt::format("SELECT count(*) FROM change_log WHERE {}", text))
        == std::to_string(rows_left));
    const auto kept = target->load_session(key, {}).value().value();
    BOOST_TEST((*kept.scope.keys.find("secret"))->get<int>() == 10);
    BOOST_TEST(kept.scope.revision == 10U);
    BOOST_TEST(count_in(target->load_scope(user).value()->keys) == 7);
    expect_sound();
  };
  expect_gone(2, 2);
  trim.event = event_with("", {{"secret", 10}});
  trim.kept->revision = 10;
  commit({trim});
  expect_gone(0, 1);
  target->close().value();
  target = open_postgres_store(url).value();
  expect_gone(0, 1);
  commit({removal(key)});
  BOOST_TEST(rows() == 0);
  BOOST_TEST(ask("SELECT count(*) FROM first_states") == "0");
  expect_sound();
}

BOOST_FIXTURE_TEST_CASE(a_trim_leaves_the_rows_of_forks, forked_place) {
  make_parent(10);
  commit({fork_of(fork_key, key, 6), fork_of(other_key, key, 4)});
  commit({trim_to(8)});
  BOOST_TEST(events() == 8);
  BOOST_TEST(events_of(fork_key) == 6U);
  // The session does not show the rows that are left for its forks.
  const std::array<std::string, 2> ids{"s1-3", "s1-9"};
  BOOST_TEST(!target->find_events(key, ids).value()[0]);
  BOOST_TEST(!!target->find_events(key, ids).value()[1]);
  BOOST_TEST(!!target->find_events(fork_key, ids).value()[0]);
  expect_sound();
  commit({removal(fork_key)});
  BOOST_TEST(events() == 6);
  BOOST_TEST(events_of(other_key) == 4U);
  commit({removal(other_key)});
  BOOST_TEST(events() == 2);
  expect_sound();
}

BOOST_FIXTURE_TEST_CASE(the_newest_row_is_stripped_after_its_fork,
                        forked_place) {
  make_parent(5);
  commit({fork_of(fork_key, key, 5)});
  commit({trim_to(5)});
  BOOST_TEST(events() == 5);
  commit({removal(fork_key)});
  BOOST_TEST(events() == 0);
  BOOST_TEST(rows() == 1);
  expect_sound();
}

BOOST_FIXTURE_TEST_CASE(a_hidden_past_keeps_its_first_state, forked_place) {
  make_parent(10);
  commit({trim_to(3)});
  commit({fork_of(fork_key, key, 6), event_number(7, fork_key)});
  commit({removal(key)});
  BOOST_TEST(ask("SELECT count(*) FROM first_states") == "2");
  expect_sound();
  const auto past = target->load_session_at(fork_key, 5, 9).value().value();
  BOOST_TEST(count_in(past.scope.keys) == 5);
  BOOST_TEST(past.events.size() == 2U);
  commit({removal(fork_key)});
  BOOST_TEST(ask("SELECT count(*) FROM first_states") == "0");
  BOOST_TEST(rows() == 0);
}

// Another process learns of a revision whose row was trimmed before it looked.
BOOST_FIXTURE_TEST_CASE(a_trimmed_revision_moves_other_writers, forked_place) {
  make_parent(5);
  const auto other = open_postgres_store(url).value();
  const std::vector late{event_number(6, key), event_number(7, key)};
  BOOST_TEST(other->commit({late.data(), 1}).value().moved.empty());
  commit({late[1]});
  commit({trim_to(7)});
  auto again = event_number(7, key);
  again.event = event_with("again", {{"count", 1}});
  BOOST_TEST(other->commit({&again, 1}).value().moved.size() == 1U);
  BOOST_TEST(target->load_session(key, {}).value()->scope.revision == 7U);
  expect_sound();
}

// The second store stands for another process.
BOOST_FIXTURE_TEST_CASE(another_store_does_not_load_what_is_gone,
                        forked_place) {
  make_parent(5);
  const auto other = open_postgres_store(url).value();
  BOOST_TEST(other->load_events(key, 1, 9).value().size() == 5U);
  BOOST_TEST(code_of(other->load_session_at(key, 2, 9)) == "ok");
  commit({trim_to(3)});
  BOOST_TEST(code_of(other->load_events(key, 1, 9)) == "gone");
  BOOST_TEST(code_of(other->load_session_at(key, 2, 9)) == "gone");
  const auto loaded = other->load_session(key, {}).value().value();
  BOOST_TEST(loaded.first_revision == 3U);
  BOOST_TEST(loaded.events.size() == 2U);
}

BOOST_DATA_TEST_CASE_F(
  forked_place,
  damage_to_a_trimmed_session_is_found,
  data::make(std::vector<std::string>{
    "DELETE FROM change_log WHERE session_revision = 2",
    "DELETE FROM change_log WHERE session_revision = 9",
    "DELETE FROM first_states",
    "UPDATE first_states SET delta = '{\"count\":8,\"lost\":1}'",
    "INSERT INTO first_states VALUES (99, 1, 1, '')"}),
  damage) {
  make_parent(10);
  commit({fork_of(fork_key, key, 4), trim_to(8)});
  expect_sound();
  ask(damage);
  BOOST_TEST(!target->check({}).value().empty());
}

BOOST_AUTO_TEST_SUITE_END()
