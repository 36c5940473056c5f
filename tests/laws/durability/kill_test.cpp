// Processes on one SQLite file that are killed at their work.
//
// `test_durability --run_test=kills -- KILLS SEED` does more of it; see
// kill_many.

#include "durable_place.hpp"
#include <boost/test/unit_test.hpp>

#include <csignal>
#include <memory>
#include <string>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(kills)

namespace {

// Number of kills between two checks, and per file. A check reads the whole
// file, so the file has to stay small.
constexpr std::size_t kills_per_check = 5;
constexpr std::size_t kills_per_file = 15;

std::uint64_t argument(int index, std::uint64_t otherwise) {
  const auto& suite = boost::unit_test::framework::master_test_suite();
  return suite.argc > index ? std::stoull(suite.argv[index]) : otherwise;
}

// Starts one process, and kills it while it opens the store or while it writes.
void kill_one(const durable_place& place,
              std::uint32_t run,
              random_source& random) {
  writer_options how;
  how.run = run;
  how.threads = static_cast<std::uint32_t>(1 + random.below(4));
  how.window = random.one_in(2) ? 1 : 16;
  how.small = random.one_in(3);
  program writer(place.words(how));
  if (random.one_in(6)) {
    pass_time(random, 60'000);
  } else {
    await_ready(writer);
    pass_time(random, random.one_in(8) ? 400'000 : 60'000);
  }
  writer.send(SIGKILL);
  const auto end = writer.wait();
  BOOST_TEST(end.code == 128 + SIGKILL);
  BOOST_TEST(end.errors == "");
}

} // namespace

BOOST_AUTO_TEST_CASE(what_was_acknowledged_survives_every_kill) {
  const auto kills = argument(1, 30);
  const auto seed = argument(2, 20'261);
  random_source random(seed);
  std::unique_ptr<durable_place> place;
  for (std::uint32_t count = 0; count < kills; ++count) {
    if (count % kills_per_file == 0)
      place = std::make_unique<durable_place>(
        work_plan{.seed = seed + count, .sessions = 6, .users = 2});
    kill_one(*place, count, random);
    if ((count + 1) % kills_per_check == 0 || count + 1 == kills) {
      const auto findings = place->findings();
      BOOST_TEST_REQUIRE(findings == "",
                         "after " << count + 1 << " kills of seed " << seed
                                  << ":" << findings);
      BOOST_TEST_MESSAGE(count + 1 << " kills, " << place->acknowledged()
                                   << " answers in this file");
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
