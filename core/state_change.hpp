// The newest state of an app or a user, with its differences from the state
// before: the element that a `state_follower` delivers.

#pragma once

#include "troupe/core/json.hpp"
#include "troupe/core/session_diff.hpp"
#include "troupe/core/state.hpp"

#include <cstdint>
#include <vector>

namespace troupe {

/// A state of an app or a user.
struct state_change {
  /// Number of the changes that the state has had. It may be several above that
  /// of the delivery before.
  std::uint64_t revision = 0;
  /// All keys of the app or user, with their prefix.
  readonly_state state;
  /// The keys whose values differ from those of the state before, in the order
  /// of their bytes. Empty if all of them have their old values again.
  std::vector<key_difference> keys;
  /// The state before is not known, so `keys` has all present keys, without
  /// their values before.
  bool lists_all = false;
};

/// Compares two states of one scope, whose names have no prefix. Without a
/// state before, each key differs.
std::vector<key_difference>
changed_keys(const state_map* before, const state_map& after, scope where);

/// Returns `{"revision", "state": {key: value}, "keys": [{"key", "before",
/// "after"}], "listsAll": boolean}`. A side without a value has no field.
json to_json(const state_change& change);

} // namespace troupe
