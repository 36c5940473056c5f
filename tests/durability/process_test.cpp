// Several processes on one SQLite file at once.

#include "durable_place.hpp"
#include <boost/test/unit_test.hpp>

#include <csignal>
#include <list>
#include <string>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(processes)

BOOST_AUTO_TEST_CASE(four_processes_on_one_file_lose_nothing) {
  durable_place place({.seed = 401, .sessions = 4, .users = 2});
  std::list<program> writers;
  for (std::uint32_t run = 0; run < 4; ++run)
    writers.emplace_back(place.words({.run = run, .threads = 2, .events = 60}));
  for (auto& writer : writers) {
    const auto end = writer.wait();
    BOOST_TEST(end.code == 0);
    BOOST_TEST(end.errors == "");
  }
  BOOST_TEST(place.findings() == "");
}

BOOST_AUTO_TEST_CASE(appends_of_one_thread_stay_in_order_among_processes) {
  durable_place place({.seed = 404, .sessions = 2, .users = 1});
  std::list<program> writers;
  for (std::uint32_t run = 0; run < 3; ++run)
    writers.emplace_back(
      place.words({.run = run, .threads = 2, .window = 8, .events = 120}));
  for (auto& writer : writers) {
    const auto end = writer.wait();
    BOOST_TEST(end.code == 0);
    BOOST_TEST(end.errors == "");
  }
  BOOST_TEST(place.findings() == "");
}

BOOST_AUTO_TEST_CASE(one_of_four_that_is_killed_takes_nothing_with_it) {
  random_source random(402);
  durable_place place({.seed = 402, .sessions = 4, .users = 2});
  std::list<program> writers;
  for (std::uint32_t run = 0; run < 3; ++run)
    writers.emplace_back(
      place.words({.run = run, .threads = 2, .events = 60, .small = run == 1}));
  for (std::uint32_t run = 3; run < 6; ++run) {
    program victim(place.words({.run = run, .threads = 2, .window = 8}));
    await_ready(victim);
    pass_time(random, 100'000);
    victim.send(SIGKILL);
    BOOST_TEST(victim.wait().errors == "");
  }
  for (auto& writer : writers) {
    const auto end = writer.wait();
    BOOST_TEST(end.code == 0);
    BOOST_TEST(end.errors == "");
  }
  BOOST_TEST(place.findings() == "");
}

BOOST_AUTO_TEST_CASE(a_full_disk_fails_appends_and_later_ones_work) {
  durable_place place({.seed = 403, .sessions = 4, .users = 2});
  // Beyond what the ledgers come to.
  program writer(place.words({.threads = 4,
                              .events = 600,
                              .retries = true,
                              .file_bytes_max = 1'000'000}));
  const auto end = writer.wait();
  BOOST_TEST(end.code == 0);
  BOOST_TEST(end.errors == "");
  BOOST_TEST(end.output == "open\nready\nwas full\ndone\n");
  BOOST_TEST(place.findings() == "");
}

BOOST_AUTO_TEST_SUITE_END()
