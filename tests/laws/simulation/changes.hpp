// Random deltas: all operations on all scopes, over few keys, so that they
// conflict often.

#pragma once

#include "troupe/core/delta.hpp"
#include "troupe/core/state.hpp"

#include "dice.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace troupe::testing {

/// One operation as a caller writes it.
struct wanted_change {
  std::string key;
  operation_kind kind{};
  json operand;
  json expected;
};

struct change_habits {
  std::size_t operations_max = 4;
  /// One in so many operations is of a kind for another type of key; 0: none.
  std::size_t misfits = 30;
  /// One in so many operations is on a key of user or app.
  std::size_t widens = 3;
  std::size_t compares = 12;
};

/// Makes the operations of one event. `tag` makes values that no other event
/// writes. `temp` allows `temp:` keys.
std::vector<wanted_change> make_changes(dice& chance,
                                        const change_habits& habits,
                                        const std::string& tag,
                                        bool temp);

/// Makes one operation on a key with this prefix.
wanted_change make_change(dice& chance,
                          const change_habits& habits,
                          const std::string& tag,
                          const std::string& prefix);

/// Returns the changes as the delta of an event.
delta as_delta(const std::vector<wanted_change>& changes);

/// Records the changes through the state of a context.
void record(state& target, const std::vector<wanted_change>& changes);

/// Makes an object of sets alone: an initial state, or the delta of a message.
json make_sets(dice& chance, const std::string& tag, bool temp);

} // namespace troupe::testing
