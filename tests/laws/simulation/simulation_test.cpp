// Plays five hundred small seeds, each of them twice, and further seeds that
// once found a defect. Then sixty seeds of runs that are killed and recovered.

#include "simulation.hpp"

#include "../recovery/recovery_simulation.hpp"
#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <set>
#include <string>

namespace troupe::testing {

BOOST_AUTO_TEST_SUITE(simulation)

namespace {

simulation_outcome check_seed(std::uint64_t seed,
                              place_kind second = place_kind::memory) {
  const auto outcome = simulate_twice(seed, second);
  for (const auto& each : outcome.findings)
    BOOST_ERROR("seed " << seed << ": " << each);
  if (!outcome.findings.empty())
    BOOST_ERROR("play it again: simulate --seed " << seed << " --verbose");
  return outcome;
}

} // namespace

BOOST_AUTO_TEST_CASE(every_seed_agrees_with_the_model_and_replays) {
  constexpr std::uint64_t seeds = 500;
  std::set<std::string> answers;
  for (std::uint64_t seed = 0; seed < seeds; ++seed)
    for (const auto& each : check_seed(seed).answers)
      answers.insert(each.substr(0, each.rfind(' ')));
  // The seeds reach every kind of answer.
  for (const std::string wanted : {"append ok",
                                   "append busy",
                                   "append conflict",
                                   "append not_found",
                                   "append store_failed",
                                   "append too_large",
                                   "append type_error",
                                   "create ok",
                                   "create store_failed",
                                   "get ok",
                                   "get not_found",
                                   "get store_failed",
                                   "rewind ok",
                                   "rewind conflict",
                                   "rewind invalid_argument",
                                   "rewind not_found",
                                   "fork ok",
                                   "fork already_exists",
                                   "fork not_found",
                                   "fork store_failed",
                                   "reader ok",
                                   "reader not_found",
                                   "reader waits",
                                   "list ok",
                                   "remove ok",
                                   "remove_user ok",
                                   "get_user_state ok",
                                   "get_app_state ok",
                                   "write_state ok",
                                   "write_state conflict",
                                   "write_state type_error",
                                   "write_state store_failed",
                                   "run ok",
                                   "run busy",
                                   "run cancelled",
                                   "run callback_failed",
                                   "run conflict",
                                   "run model_failed",
                                   "run not_found",
                                   "run store_failed",
                                   "run type_error",
                                   "run limit_exceeded",
                                   "run deadline_exceeded"})
    BOOST_TEST(answers.contains(wanted), "no call was answered: " << wanted);
}

BOOST_AUTO_TEST_CASE(seeds_that_once_found_something_stay_clean) {
  for (const std::uint64_t seed :
       {510U,   567U,   647U,   668U,   847U,   969U,  1093U, 1326U, 1609U,
        1850U,  1885U,  2029U,  2032U,  2112U,  2232U, 2247U, 2272U, 2306U,
        2507U,  2520U,  2630U,  3099U,  3232U,  3674U, 3716U, 3761U, 3803U,
        4909U,  5454U,  5795U,  6611U,  6842U,  7103U, 7587U, 7622U, 8296U,
        16540U, 22449U, 23885U, 24802U, 28378U, 53896U})
    static_cast<void>(check_seed(seed));
}

// The store on disk gives the same history as the store in memory, call by
// call. In seeds where the file is replaced, both agree with the model.
BOOST_AUTO_TEST_CASE(seeds_have_the_same_history_over_sqlite) {
  constexpr std::uint64_t seeds = 60;
  for (std::uint64_t seed = 0; seed < seeds; ++seed)
    static_cast<void>(check_seed(seed, place_kind::sqlite));
}

BOOST_AUTO_TEST_CASE(killed_runs_end_as_undisturbed_ones_and_replay) {
  constexpr std::uint64_t seeds = 60;
  std::set<std::string> answers;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const auto outcome = simulate_recoveries_twice(seed);
    for (const auto& each : outcome.findings)
      BOOST_ERROR("seed " << seed << ": " << each);
    if (!outcome.findings.empty())
      BOOST_ERROR("play it again: simulate --recoveries --seed "
                  << seed << " --verbose");
    for (const auto& each : outcome.answers)
      answers.insert(each.substr(0, each.rfind(' ')));
  }
  // The seeds reach every kind of answer.
  for (const std::string wanted : {"start ok",
                                   "start cancelled",
                                   "recovery ok",
                                   "recovery busy",
                                   "recovery cancelled",
                                   "recovery conflict",
                                   "runs ok"})
    BOOST_TEST(answers.contains(wanted), "no run was answered: " << wanted);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace troupe::testing
