// Forks in a PostgreSQL store: the events that they share, their removal and
// damage to them.

#include "troupe/stores/postgres/open.hpp"

#include "../outcome.hpp"
#include "counting_client.hpp"
#include "postgres_server.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <fmt/format.h>

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

BOOST_AUTO_TEST_SUITE_END()
