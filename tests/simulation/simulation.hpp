// One seed, from an empty place to the verdict.

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
  /// What is wrong; empty if nothing is.
  std::vector<std::string> findings;
  /// Of all that happened, in its order.
  std::uint64_t hash = 0;
  std::size_t calls = 0;
  std::size_t runs = 0;
  std::size_t changes = 0;
  std::size_t steps = 0;
  std::size_t restarts = 0;
  std::size_t failures = 0;
  /// How often each answer was given: `"append ok"`.
  std::vector<std::string> answers;
};

/// Plays the seed once. `on_note` gets a line for each thing that happens.
simulation_outcome simulate(std::uint64_t seed,
                            place_kind over = place_kind::memory,
                            bool with_verdict = true,
                            const std::function<void(std::string_view)>& on_note
                            = {});

/// Plays the seed twice, the second time over the given place: a different
/// history is a finding, too.
simulation_outcome simulate_twice(std::uint64_t seed,
                                  place_kind second = place_kind::memory);

} // namespace troupe::testing
