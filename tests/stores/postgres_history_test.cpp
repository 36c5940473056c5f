// Servers that lose confirmed commits while stores stay open, in every way in
// which that happens.

#include "troupe/stores/postgres/open.hpp"

#include "../outcome.hpp"
#include "counting_client.hpp"
#include "postgres_server.hpp"
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
using namespace troupe::testing::counted;

BOOST_AUTO_TEST_SUITE(postgres_history)

namespace {

using store_ptr = std::unique_ptr<store>;

postgres_server& shared_server() {
  static postgres_server server;
  return server;
}

std::string fresh_url() {
  static int count = 0;
  return shared_server().url(fmt::format("history_{}", ++count));
}

store_ptr open_with(const std::string& url,
                    durability promised = durability::durable) {
  return open_postgres_store(url, {.durability = promised}).value();
}

// Stores the session and `count` events of it on the disk.
void prepare(const std::string& url, int count) {
  const auto target = open_with(url);
  const auto change = create_session(session);
  BOOST_REQUIRE(target->commit({&change, 1}).value().moved.empty());
  counting_client client(*target);
  for (int i = 0; i < count; ++i)
    client.count(fmt::format("base-{}", i)).value();
  target->close().value();
}

std::vector<std::string> stored_ids(store& target) {
  std::vector<std::string> ids;
  for (const auto& said : target.load_events(key, 1, 1'000).value())
    ids.push_back(said->id);
  return ids;
}

// Checks that state and log agree in every scope.
void check_counts(store& target, std::int64_t expected) {
  for (const auto count : counting_client(target).counts())
    BOOST_TEST(count == expected);
  const auto ids = stored_ids(target);
  BOOST_TEST(std::ssize(ids) == expected);
  const auto findings = target.check({}).value();
  BOOST_TEST(findings.empty(), (findings.empty() ? "" : findings.front()));
}

// Lets two stores commit events that are then lost, and checks how each
// continues.
template <class Begin, class Lose>
void lose_commits(const std::string& url,
                  durability promised,
                  const Begin& begin,
                  const Lose& lose) {
  prepare(url, 2);
  const auto one = open_with(url, promised);
  const auto other = open_with(url, promised);
  counting_client of_one(*one);
  counting_client of_other(*other);
  begin();
  for (const auto* const id : {"lost-1", "lost-2", "lost-3"})
    of_one.count(id).value();
  for (const auto* const id : {"lost-4", "lost-5"})
    of_other.count(id).value();
  static_cast<void>(one->changed_elsewhere().value());
  of_one.load().value();
  BOOST_TEST(of_one.counts()[0] == 7);
  lose();

  // Another process writes until the scopes have the revisions that `one`
  // knows.
  static_cast<void>(other->changed_elsewhere().value());
  const auto lost_of_other = other->take_lost_history();
  BOOST_REQUIRE(lost_of_other.has_value());
  BOOST_TEST(lost_of_other->commits == 2U);
  of_other.load().value();
  BOOST_TEST(of_other.counts()[0] == 2);
  for (int i = 0; i < 5; ++i)
    of_other.count(fmt::format("new-{}", i)).value();
  BOOST_TEST(of_other.revision() == of_one.revision());
  BOOST_TEST(!other->take_lost_history().has_value());

  const auto change = of_one.next("late");
  const auto outcome = one->commit({&change, 1}).value();
  for (const auto& owner : {app, user, session})
    BOOST_TEST(std::ranges::count(outcome.moved, owner) == 1);
  const auto lost_of_one = one->take_lost_history();
  BOOST_REQUIRE(lost_of_one.has_value());
  BOOST_TEST(lost_of_one->commits == 3U);
  BOOST_TEST(lost_of_one->warning.find("lost 3 commits") != std::string::npos,
             lost_of_one->warning);
  BOOST_TEST(!one->take_lost_history().has_value());
  const std::array<std::string, 3> ids{"lost-2", "base-1", "late"};
  const auto found = one->find_events(key, ids).value();
  BOOST_TEST(!found[0]);
  BOOST_TEST(found[1]->id == "base-1");
  BOOST_TEST(!found[2]);
  of_one.load().value();
  of_one.count("late").value();
  BOOST_TEST(!one->take_lost_history().has_value());
  check_counts(*one, 8);
}

} // namespace

BOOST_DATA_TEST_CASE(a_crash_without_durability_is_noticed,
                     boost::unit_test::data::make({0, 1})) {
  lose_commits(
    fresh_url(),
    sample == 0 ? durability::os : durability::none,
    [] { shared_server().hold_log(); },
    [how = sample] {
      if (how == 0)
        shared_server().stop(postgres_server::stopping::immediate);
      else
        shared_server().kill();
      shared_server().start();
    });
}

BOOST_AUTO_TEST_CASE(a_restored_backup_is_noticed) {
  lose_commits(
    fresh_url(),
    durability::durable,
    [] { shared_server().back_up(); },
    [] {
      shared_server().stop(postgres_server::stopping::fast);
      shared_server().restore();
      shared_server().start();
    });
}

BOOST_AUTO_TEST_CASE(a_replica_that_lagged_when_it_took_over_is_noticed) {
  postgres_server primary;
  std::optional<postgres_server> standby;
  // The URL names both servers, so the standby's address is needed before the
  // standby exists.
  prepare(primary.url("history"), 0);
  standby.emplace(postgres_server::standby_of{primary});
  lose_commits(
    postgres_server::url_of_either(*standby, primary, "of_either"),
    durability::durable,
    [&] {
      standby->catch_up_with(primary);
      standby->cut_off();
    },
    [&] {
      primary.kill();
      standby->promote();
    });
}

BOOST_AUTO_TEST_CASE(a_standby_is_not_a_store_but_can_be_checked) {
  postgres_server primary;
  prepare(primary.url("history"), 3);
  const postgres_server standby(postgres_server::standby_of{primary});
  const auto url = standby.url("history");
  BOOST_TEST(code_of(open_postgres_store(url)) == "store_failed");
  const auto any = open_postgres_store(url + "&target_session_attrs=any");
  BOOST_TEST(reason_of(any).find("standby") != std::string::npos,
             reason_of(any));
  const auto target = open_postgres_store(url, {.read_only = true}).value();
  BOOST_TEST(target->check({}).value().empty());
}

BOOST_AUTO_TEST_CASE(a_load_of_another_history_is_followed_by_a_warning) {
  const auto url = fresh_url();
  prepare(url, 2);
  const auto target = open_with(url, durability::os);
  counting_client client(*target);
  shared_server().hold_log();
  client.count("lost").value();
  shared_server().kill();
  shared_server().start();
  // The load shows the stored state; the store does not know of the loss yet.
  BOOST_TEST(target->load_session(key, {}).value()->scope.revision == 2U);
  BOOST_TEST(!target->take_lost_history().has_value());
  BOOST_TEST(target->changed_elsewhere().value().empty());
  BOOST_TEST(target->take_lost_history().value().commits == 1U);
}

BOOST_AUTO_TEST_CASE(commits_of_others_that_were_only_loaded_count_as_known) {
  const auto url = fresh_url();
  prepare(url, 2);
  const auto one = open_with(url, durability::os);
  const auto other = open_with(url, durability::os);
  shared_server().hold_log();
  counting_client(*other).count("lost").value();
  BOOST_TEST(one->load_session(key, {}).value()->scope.revision == 3U);
  shared_server().kill();
  shared_server().start();
  static_cast<void>(one->changed_elsewhere().value());
  const auto lost = one->take_lost_history();
  BOOST_REQUIRE(lost.has_value());
  BOOST_TEST(lost->commits == 0U);
  BOOST_TEST(lost->warning.find("none of them its own") != std::string::npos,
             lost->warning);
}

BOOST_AUTO_TEST_CASE(a_commit_that_failed_is_not_counted_as_lost) {
  const auto url = fresh_url();
  prepare(url, 2);
  const auto target = open_with(url, durability::os);
  counting_client client(*target);
  const auto schema = url.substr(url.rfind("%3D") + 3);
  // The trigger fails at the commit on the server, so the store does not know
  // the outcome.
  shared_server().ask(fmt::format(
    "CREATE FUNCTION {0}.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
    " RAISE EXCEPTION 'not now'; END $$;"
    "CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON {0}.change_log"
    " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION {0}.refuse()",
    schema));
  BOOST_TEST(code_of(client.count("refused")) == "store_failed");
  shared_server().ask(
    fmt::format("DROP TRIGGER refuse ON {}.change_log", schema));
  client.load().value();
  client.count("stored").value();
  BOOST_TEST(target->changed_elsewhere().value().empty());
  BOOST_TEST(!target->take_lost_history().has_value());
  check_counts(*target, 3);
}

BOOST_AUTO_TEST_CASE(ids_of_lost_scopes_are_not_given_out_again) {
  const auto url = fresh_url();
  prepare(url, 0);
  const auto schema = url.substr(url.rfind("%3D") + 3);
  const auto newest = [&] {
    return shared_server().ask(
      fmt::format("SELECT id FROM {}.scopes WHERE session = 's2'", schema));
  };
  const auto create = [&] {
    const auto target = open_with(url, durability::os);
    const auto change = create_session({"press", "ann", "s2"});
    BOOST_REQUIRE(target->commit({&change, 1}).value().moved.empty());
  };
  shared_server().hold_log();
  create();
  const auto before = newest();
  shared_server().kill();
  shared_server().start();
  BOOST_TEST(newest() == "");
  create();
  BOOST_TEST(newest() != before);
}

BOOST_AUTO_TEST_SUITE_END()
