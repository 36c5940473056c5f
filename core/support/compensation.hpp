// Compensation: a rewind undoes the typed operations of a session on `user:`
// and `app:` keys.
//
// The recorded operations of all events behind the place are undone, newest
// first, also those of events and rewinds that were taken back. So the share of
// the session in each value is again that at the place, and rewinds can go back
// and forward in any order. Other sessions' changes stay.

#pragma once

#include "troupe/core/event_log.hpp"
#include "troupe/core/state.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace troupe {

/// The changes that the events behind a place have made to `user:` and `app:`
/// keys.
class wide_changes {
public:
  /// `events` are all events of the session behind the revision `place`; the
  /// object keeps them. Those up to the revision `shared` belong to the parent
  /// of a fork, and are not undone.
  wide_changes(event_slice events, std::uint64_t place, std::uint64_t shared);

  /// The keys that live events have changed in a way that is not undone: set,
  /// erased, changed without a record or by events of a parent.
  std::vector<std::string> kept_keys() const;

  /// The other keys, if the rewind `change` or live events have operations on
  /// them.
  std::vector<std::string> undone_keys(const event& change) const;

  /// Adds the operations that undo to `change`, and records them there. `now`
  /// has the present values. Fails with `errc::conflict`, naming the key, if an
  /// operation cannot be undone.
  result<void> undo(const readonly_state& now, event& change) const;

private:
  // The operations of one event on one key.
  struct step {
    event_ptr said;
    std::vector<const applied_operation*> done;
  };

  struct key_changes {
    std::vector<step> steps; // To be undone; newest first.
    // An event has replaced the value: older operations have no effect.
    bool is_closed = false;
    bool is_kept = false;
    // A live event has operations on it.
    bool is_live = false;
  };

  void add(std::uint64_t number, bool is_own, bool is_balanced);

  event_slice events_;
  event_slice live_;
  std::map<std::string, key_changes> keys_;
};

} // namespace troupe
