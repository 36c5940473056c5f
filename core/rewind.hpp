// Rewinds: events that take back the events directly before them.
//
// Nothing is removed from a log. A rewind is an event with
// `actions.agentState.takesBack`, the number of events directly before it that
// it takes back. The number means the same in every log that holds these
// events. A rewind itself is not live either, and one that is taken back has
// no effect: the events that it had taken back are shown again. ADK names the
// first run that is taken back, in `actions.rewindBeforeInvocationId`.

#pragma once

#include "troupe/core/event.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// Returns the number of events directly before `said` that it takes back;
/// unset if it is no rewind.
std::optional<std::uint64_t> taken_back_by(const event& said);

/// Returns true if `said` is a rewind, also one by ADK without a number, or has
/// a number of the wrong type.
bool is_rewind(const event& said);

/// Makes `said` a rewind of the `count` events directly before it. `before_run`
/// is the invocation id of the first of them, for readers of ADK; empty if the
/// events do not begin with a run.
void take_back(event& said,
               std::uint64_t count,
               const std::string& before_run = {});

/// Returns the wire form of an event for ADK: `to_json` without `appliedOps`,
/// and a rewind that ADK's field describes has no number. `number_rewinds`
/// finds it again.
json to_adk_json(const event& said);

/// Gives the rewinds of ADK in a whole log, oldest event first, the number of
/// events that they take back, as ADK counts: up to the first event with that
/// invocation id, or none if no event before has it. Rewinds with a number keep
/// it. Fails with `errc::invalid_argument`, naming the event, if a number is
/// larger than the number of events before, or not the one that ADK counts.
result<void> number_rewinds(std::vector<event>& log);

} // namespace troupe
