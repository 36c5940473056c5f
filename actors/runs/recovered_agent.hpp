// One call of an agent in a run that was recovered: whether it had ended, and
// how far it had come (contexts/lanes/recovered_run.hpp).

#pragma once

#include "troupe/actors/runs/lane.hpp"
#include "troupe/contexts/lanes/recovered_run.hpp"

#include <cstdint>
#include <string>

namespace troupe::actors {

/// The place of one agent, and those of the call that it is part of: agents
/// hand over within a call.
struct agent_place {
  /// Place of the agent.
  std::string own;
  /// Place of the first agent of the call.
  std::string first;
  /// Place of the agent that calls; empty for none.
  std::string above;
  /// True if the agent above calls its agents one after another.
  bool in_order = false;
};

/// Returns the events that an earlier process has left of the agent; null if
/// there are none, or the run was not recovered.
const recovered_run::part* left_at(const lane_actor& lane,
                                   const agent_place& place);

/// Returns true if the agent had ended: its work is done, with all callbacks.
bool has_ended(const lane_actor& lane,
               const agent_place& place,
               const recovered_run::part& left);

/// Returns true if its body had ended, and at most the callbacks behind it are
/// left.
bool has_ended_body(const agent& which, const recovered_run::part& left);

/// Returns the number of the last event of the callbacks before the agent; 0 if
/// there is none.
std::uint64_t last_before(const recovered_run::part& left);

/// Returns the name of the agent to which it had handed over; empty for none.
std::string successor_in(const recovered_run::part& left);

/// Returns true if one of its own events escalates.
bool has_escalated_itself(const recovered_run::part& left);

/// Gives the lane the last words and the output of the agent.
void restore_words(lane_actor& lane,
                   const agent_place& place,
                   const std::string& branch,
                   const recovered_run::part& left);

/// Requires that the agent can have left these events. Throws `errc::conflict`,
/// which names the difference, and also if the lane has lost `temp:` keys that
/// the options do not allow to lose.
void check_left(const lane_actor& lane,
                const agent_place& place,
                const agent& which,
                const recovered_run::part& left);

} // namespace troupe::actors
