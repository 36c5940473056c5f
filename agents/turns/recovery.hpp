// Recoveries of runs whose process ended before them, as the session's history
// records them.
//
// A recovery claims its run by an event of this run with the number of the
// recovery (`recovers_fact`). The owner of the session refuses a claim if the
// newest claim of the run is of another holder than the one that was found, and
// refuses events of the run that an earlier process sends after the claim.

#pragma once

#include "troupe/core/content.hpp"
#include "troupe/core/error.hpp"
#include "troupe/core/event_log.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// Wish to recover a run.
struct recovery_wish {
  /// Id of the run.
  std::string invocation_id;
  /// As in `run_options`.
  std::size_t recoveries_max = 0;
  bool allow_lost_temp = false;
  /// Holder of the run when it was found to be free: a process, or a name that
  /// `is_left`; unset if the store keeps no open runs.
  std::optional<std::string> free_holder = {};
  /// True if the holder had left the run, and has not crashed: the recovery
  /// does not count for `recoveries_max`.
  bool was_left = false;
};

/// Returns the holder of a run that process `id` has left open and does not
/// execute. Such a run is free. `recoveries` is the number of its recoveries so
/// far, so the name is new after each of them.
std::string left_holder(std::string_view id, std::uint64_t recoveries);
/// The same for a run that was left because its recovery was refused.
std::string refused_holder(std::string_view id, std::uint64_t recoveries);

/// Returns true for a name of `left_holder` or `refused_holder`.
bool is_left(std::string_view holder) noexcept;
/// Returns true for a name that `refused_holder` has made.
bool is_refused(std::string_view holder) noexcept;

/// A run in the history of its session.
struct recorded_run {
  /// Number of its message, and the message.
  std::uint64_t message = 0;
  event_ptr said;
  /// Number of its recoveries.
  std::uint64_t recoveries = 0;
};

/// Finds the run of the wish among the events of a session, and checks that it
/// can be recovered. `all` has the events that a rewind has taken back, too.
/// Fails with `errc::not_found` if the run has no message that counts; with
/// `errc::conflict` if the run has paused, has released its pause or lost it to
/// another run, has lost `temp:` keys, was recovered by another process than
/// the holder of the wish, or has events of agents without a place, of an
/// earlier version; and with `errc::limit_exceeded` if its process has ended
/// too often without leaving it.
///
/// Sets `is_over`, unless it is null, if no later recovery can succeed: the run
/// has paused, has released its pause or lost it, or its message is gone.
result<recorded_run> find_recoverable(const event_slice& all,
                                      const recovery_wish& wish,
                                      bool* is_over = nullptr);

/// Makes the event by which process `holder` claims a run.
event make_claim_event(std::string root_name,
                       const std::string& invocation_id,
                       const std::string& holder);

/// Writes the number of the recovery and `recovery_wish::was_left` into a
/// claim. Replaces what an earlier call has written.
void number_claim(event& claim, std::uint64_t number, bool was_left = false);

/// Returns the number that `number_claim` has written.
std::uint64_t number_of_claim(const event& claim);

/// Returns true if the claim tells that its run had been left.
bool tells_leave(const event& claim);

/// Returns true if the event claims a run, whose id it has as `invocation_id`.
bool claims_run(const event& said);

/// Returns the id of the process that made a claim; empty if it has none.
std::string holder_of_claim(const event& claim);

/// Makes the error for keys that were lost, which are named without prefix.
error lost_temp(std::string_view invocation_id,
                const std::vector<std::string>& names);

} // namespace troupe
