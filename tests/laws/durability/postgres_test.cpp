// Several processes on one PostgreSQL database, some of which are killed; in
// some cases the server is stopped.

#include "troupe/load/report.hpp"

#include "../../stores/postgres_server.hpp"
#include "durable_place.hpp"
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <future>
#include <list>
#include <string>
#include <utility>

using namespace troupe;
using namespace troupe::testing;

namespace {

// One server for all cases, since starting one takes a second or two. Each case
// has a schema of its own.
struct with_server {
  with_server() { shared() = std::make_unique<postgres_server>(); }

  ~with_server() { shared().reset(); }

  static std::unique_ptr<postgres_server>& shared() {
    static std::unique_ptr<postgres_server> server;
    return server;
  }
};

postgres_server& server() {
  return *with_server::shared();
}

} // namespace

BOOST_AUTO_TEST_SUITE(postgres, *boost::unit_test::fixture<with_server>())

BOOST_AUTO_TEST_CASE(four_processes_on_one_database_lose_nothing) {
  durable_place place({.seed = 501, .sessions = 4, .users = 2},
                      server().url("four"));
  check_four_writers(place);
}

BOOST_AUTO_TEST_CASE(one_of_four_that_is_killed_takes_nothing_with_it) {
  durable_place place({.seed = 502, .sessions = 4, .users = 2},
                      server().url("killed"));
  check_killed_writers(place);
}

BOOST_AUTO_TEST_CASE(a_server_that_stops_in_the_middle_is_waited_for) {
  random_source random(503);
  durable_place place({.seed = 503, .sessions = 4, .users = 2},
                      server().url("stopped"));
  std::list<program> writers;
  for (std::uint32_t run = 0; run < 2; ++run)
    writers.emplace_back(
      place.words({.run = run, .threads = 2, .events = 400, .retries = true}));
  for (auto& writer : writers)
    await_ready(writer);
  for (const auto how : {postgres_server::stopping::fast,
                         postgres_server::stopping::immediate}) {
    pass_time(random, 100'000);
    server().stop(how);
    server().start();
  }
  pass_time(random, 100'000);
  server().kill();
  server().start();
  for (auto& writer : writers)
    check_end(writer);
  BOOST_TEST(place.findings() == "");
}

// The server stays down, or returns before the end of the test.
BOOST_AUTO_TEST_CASE(a_load_test_ends_in_a_report_though_its_server_is_killed) {
  for (const bool comes_back : {false, true}) {
    load::settings chosen;
    chosen.store = server().url(comes_back ? "load_back" : "load_gone");
    chosen.callers = 8;
    chosen.duration = std::chrono::seconds(4);
    std::promise<void> under_way;
    bool is_told = false;
    auto running = std::async(std::launch::async, [&] {
      return load::run_load_test(chosen,
                                 [&](const load::progress& now) {
                                   if (now.stored > 0
                                       && !std::exchange(is_told, true))
                                     under_way.set_value();
                                 },
                                 {});
    });
    // Called on this thread, because the server ends with the thread that
    // starts it.
    under_way.get_future().wait();
    server().kill();
    if (comes_back)
      server().start();
    const auto made = running.get().value();
    if (!comes_back)
      server().start();
    BOOST_TEST(made.stored > 0U);
    BOOST_TEST(made.found.has_value() == comes_back, made.unchecked);
    if (made.found)
      BOOST_TEST(made.found->holds(), load::to_text(made));
    else
      BOOST_TEST(made.unchecked.starts_with("store_failed: "), made.unchecked);
  }
}

BOOST_AUTO_TEST_SUITE_END()
