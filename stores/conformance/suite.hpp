// Checks that a store keeps every promise of stores/store.hpp. Works for any
// store and any test framework.
//
// A check is a function that returns its failures. docs/stores.md shows how to
// run them.

#pragma once

#include "troupe/stores/store.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

/// @namespace troupe::conformance
/// Parts from which the checks of a store are made.

namespace troupe {

/// Opens a store on one location, as another process would.
using store_opener = std::function<result<std::unique_ptr<store>>()>;

/// Promises that not every store can make.
enum class store_promise : std::uint8_t {
  lasting,    ///< A commit is still there when the location is opened again.
  shared,     ///< Several stores may be open on one location and see each
              ///< other's commits.
  told,       ///< `changed_elsewhere` reports commits of others at once.
  revisions,  ///< `load_session_at` loads sessions at earlier revisions.
  forks,      ///< `can_fork`: sessions are created with the past of others.
  trims,      ///< `can_trim`: old events of sessions can be deleted.
  runs,       ///< `can_list_runs`: open runs are kept.
  mixed_apps, ///< One commit may change several apps.
};

/// The store to check.
struct store_factory {
  /// Makes an empty location and returns a function that opens it. The location
  /// may be deleted with the last copy of that function.
  std::function<store_opener()> make_place;
  /// Promises that the store does not make. Checks that need one of them are
  /// left out.
  std::vector<store_promise> without = {};

  /// Returns true if the store makes this promise: it is not in `without`.
  bool promises(store_promise asked) const;
};

/// One check of the suite.
struct conformance_check {
  /// The promise, as a sentence: `"create_of_an_existing_session_is_moved"`.
  std::string name;
  /// Runs the check on its own location. Returns one line per failure, none if
  /// the promise holds. Throws nothing.
  std::function<std::vector<std::string>(const store_factory&)> run;
  /// The promises without which the check is impossible.
  std::vector<store_promise> needs = {};
};

/// Returns all checks that `factory` does not exclude, simple ones first.
std::vector<conformance_check> conformance_checks(const store_factory& factory);

/// Sends `commands` random calls to the store and to a model of it and compares
/// every answer; reopens the location now and then. The seed determines the
/// whole run and is part of every failure.
std::vector<std::string> conformance_lockstep(const store_factory& factory,
                                              std::uint64_t seed,
                                              std::size_t commands = 3'000);

} // namespace troupe
