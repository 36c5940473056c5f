// The letter by which a reader asks an app or a user for its newest state.
//
// An owner whose state the reader has seen keeps the letter until its next
// change. So nothing is queued for a reader: a reader that is slow has no
// letter at the owner, and misses the states in between.

#pragma once

#include "troupe/actors/letters/follow.hpp"
#include "troupe/core/state_map.hpp"
#include "troupe/stores/store.hpp"

#include <cstdint>
#include <optional>

namespace troupe::actors {

/// The state that a reader has seen last.
struct state_place {
  std::uint64_t revision = 0;
  /// The keys; unset if the caller has named the revision.
  std::optional<state_map> keys;
  /// Number of removals of the user, as `removal_counts` counts them, and of
  /// losses of the store, until then.
  std::uint64_t removals = 0;
  std::uint64_t losses = 0;
  /// Number of the load that the keys are from, among the loads of all owners.
  std::uint64_t load = 0;
};

/// The newest state of an owner.
struct followed_state {
  /// Its keys are set.
  state_place place;
  /// The keys at the place of the reader, if they are known.
  std::optional<state_map> before;
  /// The reader starts here; nothing has changed.
  bool is_start = false;
};

struct follow_state : follow_call<letter_kind::follow_state, followed_state> {
  /// The app or the user.
  owner_name owner;
  /// Unset: the state at the time when the owner gets the letter.
  std::optional<state_place> place;
  /// The owner has set the place, and all its answers have turned out to be
  /// stale.
  bool is_start = false;
};

} // namespace troupe::actors
