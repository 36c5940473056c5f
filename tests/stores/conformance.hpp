// The checks of stores/conformance/suite.hpp as Boost.Test cases, one per
// check.

#pragma once

#include "troupe/core/support/sanitized.hpp"
#include "troupe/stores/conformance/suite.hpp"

#include <boost/test/unit_test.hpp>

#include <string>
#include <utility>

namespace troupe::testing {

/// Returns `all`, or two under ThreadSanitizer, which slows down runs with one
/// thread and finds nothing in them.
constexpr std::uint64_t lockstep_seeds(std::uint64_t all) {
  return is_thread_sanitized && all > 2 ? 2 : all;
}

/// Adds a suite to the program: `const conformance_suite memory("memory_store",
/// {…});` at namespace scope.
class conformance_suite {
public:
  conformance_suite(const std::string& name,
                    const store_factory& factory,
                    std::uint64_t seeds = 8,
                    std::size_t commands = 3'000) {
    namespace ut = boost::unit_test;
    auto* suite = BOOST_TEST_SUITE(name);
    const auto add = [suite](const std::string& sentence,
                             std::function<std::vector<std::string>()> act) {
      suite->add(ut::make_test_case(
        [act = std::move(act)] {
          for (const auto& failure : act())
            BOOST_ERROR(failure);
        },
        sentence,
        __FILE__,
        __LINE__));
    };
    for (const auto& check : conformance_checks(factory))
      add(check.name, [check, factory] { return check.run(factory); });
    for (std::uint64_t seed = 1; seed <= lockstep_seeds(seeds); ++seed)
      add("lockstep_with_seed_" + std::to_string(seed),
          [=] { return conformance_lockstep(factory, seed, commands); });
    ut::framework::master_test_suite().add(suite);
  }
};

} // namespace troupe::testing
