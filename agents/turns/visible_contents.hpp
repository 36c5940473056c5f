// The part of a session's history that a model sees.

#pragma once

#include "troupe/agents/agent.hpp"

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace troupe {

/// The history that the model of agent `agent_name` sees on `branch`, oldest
/// first.
///
/// Visible are events of the branch itself and of its ancestors, compared by
/// segments. Events of tasks and of called agents are visible to these agents
/// alone, and those agents see no others (`is_isolated`). Events of other
/// agents become user text that names them, quoted between markers (fence.hpp);
/// their thoughts and blank texts are left out. Each function response, the
/// newest one of its call, is placed directly after the call. A call without a
/// response gets one that states the reason, since vendors refuse unanswered
/// calls. Takes time in proportion to the visible events. Follows ADK's
/// contents rules.
///
/// If the session has events before `events`, the contents start with the first
/// event that is not the agent's own, so that the conversation does not begin
/// with an answer. `events` must be live (`event_slice::live`).
///
/// Summaries replace no event from `message` on, the number of the run's
/// message: another run may have summed them up meanwhile. 0: it has none.
/// `oldest` is the number of the first event that the session has. `visit` is
/// the id of the workflow's visit that the agent is part of, which gets the
/// input of that visit as a message of the user; empty: none.
std::vector<std::shared_ptr<const content>>
visible_contents(const event_slice& events,
                 std::string_view agent_name,
                 std::string_view branch,
                 include_contents which,
                 std::uint64_t message = 0,
                 std::uint64_t oldest = 1,
                 std::string_view visit = {});

} // namespace troupe
