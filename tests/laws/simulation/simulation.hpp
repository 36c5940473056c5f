// Plays one seed, from an empty place to the verdict.

#pragma once

#include "shared_place.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::testing {

struct simulation_outcome {
  /// The violations found; empty if there are none.
  std::vector<std::string> findings;
  /// Hash of all steps and notes, in their order.
  std::uint64_t hash = 0;
  std::size_t calls = 0;
  std::size_t runs = 0;
  std::size_t changes = 0;
  std::size_t steps = 0;
  std::size_t restarts = 0;
  std::size_t failures = 0;
  /// The number of times each answer was given: `"append ok 12"`.
  std::vector<std::string> answers;
};

/// Plays the seed once. `on_note` gets one line per event of the simulation.
simulation_outcome simulate(std::uint64_t seed,
                            place_kind over = place_kind::memory,
                            bool with_verdict = true,
                            const std::function<void(std::string_view)>& on_note
                            = {});

/// Plays the seed twice, the second time over the given place. A different
/// history is a finding, too.
simulation_outcome simulate_twice(std::uint64_t seed,
                                  place_kind second = place_kind::memory);

} // namespace troupe::testing
