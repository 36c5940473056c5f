// Plays runs whose programs are killed, are only slow, or shut down, and that
// other programs recover, in an order that a seed decides.

#pragma once

#include "../simulation/simulation.hpp"

#include <cstdint>
#include <functional>
#include <string_view>

namespace troupe::testing {

/// Plays the seed once. `on_note` gets one line per event of the simulation.
/// `calls` of the outcome counts lists and recoveries, `runs` the runs.
simulation_outcome
simulate_recoveries(std::uint64_t seed,
                    const std::function<void(std::string_view)>& on_note = {});

/// Plays the seed twice. A different history is a finding, too.
simulation_outcome simulate_recoveries_twice(std::uint64_t seed);

} // namespace troupe::testing
