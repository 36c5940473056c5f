// The calls of a turn of an LLM agent that nothing has answered yet, and what
// has to come before the agent can go on.

#pragma once

#include "troupe/contexts/lane_host.hpp"
#include "troupe/core/event_log.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

struct open_turn {
  /// Ids of what it waits for: long-running calls, and questions to the user.
  std::vector<std::string> awaited;

  /// A call that the user has decided about, or why that does not count.
  struct decided_call {
    function_call call;
    result<tool_confirmation> confirmation;
  };

  /// In the order of the calls.
  std::vector<decided_call> decided;
  /// Whom an answered call of the turn hands over to, or empty.
  std::string transfer_to_agent;
};

/// The turn of `agent_name` on `branch` in which the call of one of `ids` was
/// made, or the call that it asks the user about; empty if there is none.
///
/// Questions other than those of `ids` do not count. The call that the user was
/// asked about has to be the one that the agent made:
/// same id, name and arguments, on its branch. Calls that neither are
/// long-running nor were asked about are left out; a run that was cut off has
/// left them.
open_turn find_open_turn(const event_slice& events,
                         std::string_view agent_name,
                         std::string_view branch,
                         const std::vector<std::string>& ids);

/// The id of the call that a question to the user is about; empty if it is
/// malformed.
std::string asked_about(const function_call& question);

/// Whether an answered call has come to nothing yet: the user is to be asked,
/// or the result comes from outside.
bool is_pending(const tool_call& answered);

/// The event that asks the user about those of `answered` that want it, with
/// ids from `environment`, or nothing.
std::optional<event>
make_confirmation_event(const std::vector<tool_call>& answered,
                        environment& environment);

} // namespace troupe
