// Going back: the place that a session is rewound to, and the outcome.
//
//   auto gone_back
//     = sessions.rewind(key, rewind_target::before_run(id)).value();
//
// A rewind removes nothing. It is one appended event, which sets the session's
// keys to their earlier values and takes back the events after that place
// (core/rewind.hpp).

#pragma once

#include "troupe/core/event.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// The place that a session is rewound to.
class rewind_target {
public:
  /// The session as it was after this many events; 0 is the state of the
  /// creation. The place may lie among events that were taken back, which then
  /// count again.
  static rewind_target to(std::uint64_t revision) {
    return rewind_target(revision, {});
  }

  /// The session as it was before the first event of the run with this
  /// invocation id, as ADK rewinds. Over a store this reads the session's
  /// events.
  static rewind_target before_run(std::string invocation_id) {
    return rewind_target(std::nullopt, std::move(invocation_id));
  }

  /// The revision; unset for the place before a run.
  const std::optional<std::uint64_t>& revision() const noexcept {
    return revision_;
  }

  /// The run; empty for a revision.
  const std::string& run() const noexcept { return run_; }

private:
  rewind_target(std::optional<std::uint64_t> revision, std::string run)
    : revision_(revision),
      run_(std::move(run)) {}

  std::optional<std::uint64_t> revision_;
  std::string run_;
};

/// Conditions of a rewind.
struct rewind_options {
  /// Refuses the rewind with `errc::conflict` unless the session has this
  /// revision. A rewind of the same revision to the same place that was sent
  /// before returns the stored one.
  std::optional<std::uint64_t> expected_revision = {};
  /// If runs of this process are active, cancels them and those that wait for
  /// their turn, waits for their end, and rewinds then. Otherwise an active run
  /// is `errc::conflict`. A call that fails for another reason cancels no run,
  /// unless the session changes meanwhile. A tool or an agent of such a run
  /// must not wait for this call: the run would wait for itself.
  bool cancel_runs = false;
  /// Also undoes the typed operations on `user:` and `app:` keys (`add`,
  /// `append`, `add_to_set`, `min`, `max`, `merge`, `compare_and_set`) of the
  /// session's events after the place, in the same event: a counter loses the
  /// numbers that this session has added; those of other sessions stay.
  /// The rewind is refused as a whole with `errc::conflict`, which names the
  /// key, if one of them can no longer be undone. Values that were set or
  /// erased stay, see `rewound_session::kept_keys`.
  bool compensate = false;
};

/// A rewind that has taken effect.
struct rewound_session {
  /// The appended event, whose delta shows the changed keys.
  event_ptr event;
  /// The session's state and live events are those of this revision.
  std::uint64_t to = 0;
  /// Revision of the session after the rewind.
  std::uint64_t revision = 0;
  /// The `user:` and `app:` keys, in the order of their bytes, that live events
  /// after the place have changed. They keep their values, since other
  /// sessions may have used them; write them anew if they should go back, too.
  /// With `compensate` these are the keys that such an event has set or erased,
  /// also those whose later typed operations were undone, keys of operations
  /// that were stored by an older version, and, in a fork, keys that live
  /// events of its parent have changed.
  std::vector<std::string> kept_keys;
  /// The other `user:` and `app:` keys with typed operations after the place,
  /// in the order of their bytes: these operations have no effect any more.
  /// Empty without `compensate`.
  std::vector<std::string> compensated_keys;
  /// Invocation ids of runs that had begun before the place, among the 256
  /// events before it, and lost only their later events.
  std::vector<std::string> cut_runs;
};

} // namespace troupe
