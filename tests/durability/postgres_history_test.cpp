// Runtimes that stay open while their PostgreSQL server loses commits.

#include "../runtime/counting.hpp"
#include "../stores/postgres_server.hpp"
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <fmt/format.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

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

postgres_server& server() {
  return *with_history_server::shared();
}

std::string fresh_url() {
  static int count = 0;
  return server().url(fmt::format("runtime_{}", ++count));
}

// What a runtime was warned of.
class warnings {
public:
  runtime_options options(const std::string& url, durability promised) {
    runtime_options chosen;
    chosen.store = url;
    chosen.durability = promised;
    chosen.threads = 2;
    chosen.on_warning = [this](const std::string& warning) {
      const std::lock_guard guard(mutex_);
      told_.push_back(warning);
    };
    return chosen;
  }

  // One warning, that so many commits are lost.
  void check(const std::string& expected) const {
    const std::lock_guard guard(mutex_);
    BOOST_TEST(told_.size() == (expected.empty() ? 0U : 1U));
    for (const auto& warning : told_)
      BOOST_TEST(warning.find(expected) != std::string::npos, warning);
  }

private:
  mutable std::mutex mutex_;
  std::vector<std::string> told_;
};

event thirty() {
  return operate({operation_on("app:n", "add", 30)}, json::object(), "thirty");
}

using act = std::function<void()>;

// Both runtimes are told of events that are then lost, and go on.
void lose_under_two_runtimes(const std::string& url,
                             durability promised,
                             const act& begin,
                             const act& lose) {
  {
    warnings none;
    stage first(none.options(url, durability::durable));
    first.open();
    BOOST_TEST(first.append(here, counting("base")) == "ok");
  }
  warnings of_one;
  warnings of_other;
  {
    stage one(of_one.options(url, promised));
    stage other(of_other.options(url, promised));
    begin();
    for (const auto* const id : {"a", "b", "c"})
      BOOST_TEST(one.append(here, counting(id)) == "ok");
    BOOST_TEST(other.append(here, counting("d")) == "ok");
    BOOST_TEST(one.state(here) == counted(5));
    lose();

    BOOST_TEST(other.append(here, thirty()) == "ok");
    // The retry of a lost event is stored, and undoes nothing.
    BOOST_TEST(one.append(here, counting("b")) == "ok");
    BOOST_TEST(one.append(here, counting("e")) == "ok");
    BOOST_TEST(other.append(here, counting("b")) == "ok");
    const json expected{{"n", 3}, {"user:n", 3}, {"app:n", 33}};
    for (auto* const each : {&one, &other}) {
      BOOST_TEST(each->state(here) == expected);
      const auto events = each->events(here);
      BOOST_TEST(ids_of(events)
                   == (std::vector<std::string>{"base", "thirty", "b", "e"}),
                 boost::test_tools::per_element());
      BOOST_TEST(replay(events) == expected);
      BOOST_TEST(each->app_state() == json({{"n", 33}}));
    }
  }
  of_one.check("lost 3 commits");
  of_other.check("lost 1 commit ");
  const auto stored = open_store(url, {.read_only = true}).value();
  BOOST_TEST(stored->check({}).value().empty());
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
    [] { server().hold_log(); },
    [how = sample] {
      if (how == "os")
        server().stop(postgres_server::stopping::immediate);
      else
        server().kill();
      server().start();
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
    [] { server().back_up(); },
    [] {
      server().stop(postgres_server::stopping::fast);
      server().restore();
      server().start();
    });
}

BOOST_AUTO_TEST_CASE(a_crash_under_durable_loses_nothing) {
  warnings told;
  const auto url = fresh_url();
  {
    stage one(told.options(url, durability::durable));
    one.open();
    for (const auto* const id : {"a", "b"})
      BOOST_TEST(one.append(here, counting(id)) == "ok");
    server().hold_log();
    BOOST_TEST(one.append(here, counting("c")) == "ok");
    server().kill();
    server().start();
    BOOST_TEST(one.append(here, counting("b")) == "ok");
    BOOST_TEST(one.append(here, counting("d")) == "ok");
    BOOST_TEST(one.state(here) == counted(4));
  }
  told.check("");
}

BOOST_AUTO_TEST_CASE(a_damaged_log_is_not_shown) {
  const auto url = fresh_url();
  warnings told;
  {
    stage one(told.options(url, durability::durable));
    one.open();
    for (const auto* const id : {"a", "b", "c"})
      BOOST_TEST(one.append(here, counting(id)) == "ok");
  }
  server().ask(fmt::format("DELETE FROM {}.change_log"
                           " WHERE session_revision = 2",
                           url.substr(url.rfind("%3D") + 3)));
  stage one(told.options(url, durability::durable));
  BOOST_TEST(code_of(one.sessions().get(here)) == "corrupt");
  BOOST_TEST(one.append(here, counting("d")) == "corrupt");
}

BOOST_AUTO_TEST_SUITE_END()
