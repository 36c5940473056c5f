// Runtimes that stay open while their PostgreSQL server loses commits.

#include "../../stores/postgres_server.hpp"
#include "lost_history.hpp"
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <fmt/format.h>

#include <memory>
#include <string>

using namespace troupe;
using namespace troupe::testing;

namespace {

// One server for all cases that leave it running.
struct with_history_server {
  with_history_server() { shared() = std::make_unique<postgres_server>(); }

  ~with_history_server() { shared().reset(); }

  static std::unique_ptr<postgres_server>& shared() {
    static std::unique_ptr<postgres_server> server;
    return server;
  }
};

postgres_server& history_server() {
  return *with_history_server::shared();
}

std::string fresh_url() {
  static int count = 0;
  return history_server().url(fmt::format("runtime_{}", ++count));
}

} // namespace

BOOST_AUTO_TEST_SUITE(postgres_lost_history,
                      *boost::unit_test::fixture<with_history_server>())

BOOST_DATA_TEST_CASE(a_crash_without_durability_leaves_no_false_answer,
                     boost::unit_test::data::make({std::string("os"),
                                                   std::string("none")})) {
  lose_under_two_runtimes(
    fresh_url(),
    durability_from(sample).value(),
    [] { history_server().hold_log(); },
    [how = sample] {
      if (how == "os")
        history_server().stop(postgres_server::stopping::immediate);
      else
        history_server().kill();
      history_server().start();
    });
}

BOOST_AUTO_TEST_CASE(a_replica_that_lagged_leaves_no_false_answer) {
  postgres_server primary;
  postgres_server standby(postgres_server::standby_of{primary});
  lose_under_two_runtimes(
    postgres_server::url_of_either(primary, standby, "replicated"),
    durability::durable,
    [&] { standby.cut_off(); },
    [&] {
      primary.kill();
      standby.promote();
    });
}

BOOST_AUTO_TEST_CASE(a_restored_backup_leaves_no_false_answer) {
  lose_under_two_runtimes(
    fresh_url(),
    durability::durable,
    [] { history_server().back_up(); },
    [] {
      history_server().stop(postgres_server::stopping::fast);
      history_server().restore();
      history_server().start();
    });
}

BOOST_AUTO_TEST_CASE(a_crash_under_durable_loses_nothing) {
  warnings told;
  const auto url = fresh_url();
  {
    runtime_fixture one(told.options(url, durability::durable));
    one.open();
    for (const auto* const id : {"a", "b"})
      BOOST_TEST(one.append(here, counting(id)) == "ok");
    history_server().hold_log();
    BOOST_TEST(one.append(here, counting("c")) == "ok");
    history_server().kill();
    history_server().start();
    BOOST_TEST(one.append(here, counting("b")) == "ok");
    BOOST_TEST(one.append(here, counting("d")) == "ok");
    BOOST_TEST(one.state(here) == counted(4));
  }
  told.check({});
}

BOOST_AUTO_TEST_CASE(a_damaged_log_is_not_shown) {
  const auto url = fresh_url();
  warnings told;
  {
    runtime_fixture one(told.options(url, durability::durable));
    one.open();
    for (const auto* const id : {"a", "b", "c"})
      BOOST_TEST(one.append(here, counting(id)) == "ok");
  }
  history_server().ask(fmt::format("DELETE FROM {}.change_log"
                                   " WHERE session_revision = 2",
                                   url.substr(url.rfind("%3D") + 3)));
  runtime_fixture one(told.options(url, durability::durable));
  BOOST_TEST(code_of(one.sessions().get(here).get()) == "corrupt");
  BOOST_TEST(one.append(here, counting("d")) == "corrupt");
}

BOOST_AUTO_TEST_SUITE_END()
