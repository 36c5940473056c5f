// Whether a store keeps every promise of stores/store.hpp: for any store, and
// for any test framework.
//
// A check is a function that returns what failed. docs/stores.md shows how to
// run them.

#pragma once

#include "troupe/stores/store.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe {

/// Opens a store on one place, as one more process would.
using store_opener = std::function<result<std::unique_ptr<store>>()>;

/// What not every store can promise.
enum class store_promise : std::uint8_t {
  lasting, ///< What was committed is there when the place is opened again.
  shared,  ///< Several stores may be open on one place, and see each other's
           ///< commits.
  told,    ///< `changed_elsewhere` knows at once what others have committed.
};

/// The store to check.
struct store_factory {
  /// Makes an empty place, and returns how to open it. The place may go with
  /// the last copy of what is returned.
  std::function<store_opener()> make_place;
  /// Checks that need one of these are left out.
  std::vector<store_promise> without = {};

  bool promises(store_promise asked) const;
};

struct conformance_check {
  /// The promise, as a sentence: `"create_of_an_existing_session_is_moved"`.
  std::string name;
  /// Checks on a place of its own. One line per failure, empty when all is
  /// well; throws nothing.
  std::function<std::vector<std::string>(const store_factory&)> run;
  /// What it cannot be checked without.
  std::vector<store_promise> needs = {};
};

/// All checks that `factory` does not exclude, in the order in which to run
/// them: simple ones first.
std::vector<conformance_check> conformance_checks(const store_factory& factory);

/// Does `commands` random things to the store and to a model of it, and
/// compares every answer; opens the place again now and then. The seed decides
/// everything, and stands in every failure.
std::vector<std::string> conformance_lockstep(const store_factory& factory,
                                              std::uint64_t seed,
                                              std::size_t commands = 3'000);

} // namespace troupe
