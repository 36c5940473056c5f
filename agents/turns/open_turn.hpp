// The unanswered calls of an LLM agent's turn, and the answers that it needs to
// continue.

#pragma once

#include "troupe/contexts/lanes/host.hpp"
#include "troupe/core/event_log.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

struct open_turn {
  /// Ids of the calls that the turn waits for: long-running calls, and
  /// questions to the user.
  std::vector<std::string> awaited;

  /// A call that the user has decided about: the decision, or the reason why
  /// the answer is invalid.
  struct decided_call {
    function_call call;
    result<tool_confirmation> confirmation;
  };

  /// In the order of the calls.
  std::vector<decided_call> decided;
  /// The agent to which an answered call of the turn hands over; empty if none.
  std::string transfer_to_agent;
};

/// The turn of `agent_name` on `branch` that made a call in `ids`, or the call
/// that a question in `ids` is about. Empty if there is none.
///
/// Questions that are not in `ids` are ignored. A question must show the call
/// that the agent made: same id, name and arguments, on its branch. Calls that
/// are neither long-running nor the subject of a question are left out; an
/// interrupted run leaves such calls.
open_turn find_open_turn(const event_slice& events,
                         std::string_view agent_name,
                         std::string_view branch,
                         const std::vector<std::string>& ids);

/// Id of the call that a question to the user is about; empty if the question
/// is malformed.
std::string asked_about(const function_call& question);

/// Returns true if a call has no result yet: the user has to be asked, or the
/// result comes from outside.
bool is_pending(const tool_call& answered);

/// The event that asks the user about the calls in `answered` that need a
/// confirmation, with ids from `environment`. Unset if none does.
std::optional<event>
make_confirmation_event(const std::vector<tool_call>& answered,
                        environment& environment);

} // namespace troupe
