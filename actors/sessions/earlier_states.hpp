// The states of a session at earlier revisions, for runtimes without a store.
//
// The log has the outcomes of all events, so a state is the replay of the log
// from an earlier one. A state is kept now and then, so that a replay is short.

#pragma once

#include "troupe/core/event_log.hpp"
#include "troupe/core/ref_counted.hpp"
#include "troupe/core/state_map.hpp"

#include <cstdint>
#include <vector>

namespace troupe::actors {

struct earlier_state {
  std::uint64_t revision = 0;
  state_map keys;
  timestamp last_update_time{};
};

/// Not thread-safe: for one session. Kept states that sessions share do not
/// change.
class earlier_states {
public:
  /// Sets the state at revision 0, the outcome of the creation.
  void begin(const event& creation);

  /// Keeps the newest state if the last kept one is far behind.
  void note(std::uint64_t revision,
            const state_map& keys,
            timestamp last_update_time);

  /// Forgets the states before `revision`, and keeps that one. `log` has the
  /// events up to it, as for `at`.
  void trim(std::uint64_t revision, const event_slice& log);

  /// The states up to `last`, for a fork that begins there. O(1): both sessions
  /// share the kept ones from now on.
  earlier_states share(std::uint64_t last);

  /// The state at `revision`. `log` has at least the events up to it, from the
  /// oldest one that the session has.
  earlier_state at(std::uint64_t revision, const event_slice& log);

private:
  // Revisions from one kept state to the next.
  static constexpr std::uint64_t stride_min = 512;

  struct kept_states : ref_counted<kept_states> {
    std::vector<earlier_state> states; // In the order of their revisions.
    // States that several sessions share; those up to `last` count.
    boost::intrusive_ptr<const kept_states> past;
    std::uint64_t last = 0;
  };

  static std::uint64_t stride(const state_map& keys) noexcept;
  const earlier_state* nearest(std::uint64_t revision) const;
  void keep(earlier_state state);

  // Time of the creation. If the creation set keys, its state is kept, too.
  timestamp created_{};
  std::uint64_t newest_ = 0; // Revision of the newest kept state.
  // Null for short sessions that were created without keys.
  boost::intrusive_ptr<kept_states> kept_;
};

} // namespace troupe::actors
