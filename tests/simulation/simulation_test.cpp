// Five hundred small worlds, each of them twice.

#include "simulation.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdint>

namespace troupe::testing {

BOOST_AUTO_TEST_SUITE(simulation)

BOOST_AUTO_TEST_CASE(every_seed_agrees_with_the_model_and_replays) {
  constexpr std::uint64_t seeds = 500;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const auto outcome = simulate_twice(seed);
    for (const auto& each : outcome.findings)
      BOOST_ERROR("seed " << seed << ": " << each);
    if (!outcome.findings.empty())
      BOOST_ERROR("play it again: simulate --seed " << seed << " --verbose");
  }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace troupe::testing
