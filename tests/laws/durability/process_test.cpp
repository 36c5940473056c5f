// Several processes on one SQLite file at the same time.

#include "durable_place.hpp"
#include <boost/test/unit_test.hpp>

#include <list>
#include <string>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(processes)

BOOST_AUTO_TEST_CASE(four_processes_on_one_file_lose_nothing) {
  durable_place place({.seed = 401, .sessions = 4, .users = 2});
  check_four_writers(place);
}

BOOST_AUTO_TEST_CASE(appends_of_one_thread_stay_in_order_among_processes) {
  durable_place place({.seed = 404, .sessions = 2, .users = 1});
  std::list<program> writers;
  for (std::uint32_t run = 0; run < 3; ++run)
    writers.emplace_back(
      place.words({.run = run, .threads = 2, .window = 8, .events = 120}));
  for (auto& writer : writers)
    check_end(writer);
  BOOST_TEST(place.findings() == "");
}

BOOST_AUTO_TEST_CASE(one_of_four_that_is_killed_takes_nothing_with_it) {
  durable_place place({.seed = 402, .sessions = 4, .users = 2});
  check_killed_writers(place);
}

BOOST_AUTO_TEST_CASE(a_full_disk_fails_appends_and_later_ones_work) {
  durable_place place({.seed = 403, .sessions = 4, .users = 2});
  // The limit is larger than the ledgers become.
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
