// The first invocation of work that goes on over pauses.
//
// A run that brings the answer to a question is an invocation of its own. Its
// events, with its message, name the invocation in which the work began, in
// `customMetadata.troupe.firstInvocation`. So one id selects all events of a
// workflow, in whatever number of runs it was done:
//
//   for (const auto& each : session.events())
//     if (first_invocation(*each) == id)
//       …

#pragma once

#include "troupe/core/event.hpp"

#include <string>

namespace troupe {

/// Returns the id of the invocation in which the work began that the event is
/// part of. For the events of a run that went on from a pause this is the run
/// that asked first; for all other events it is `event::invocation_id`. The
/// reference is valid until the event is changed or destroyed.
///
/// A program that appends events may give them any such field.
const std::string& first_invocation(const event& said) noexcept;

/// Writes the first invocation into an event. An empty `id`, and the event's
/// own invocation id, remove the field. The runtime calls this for the events
/// of its runs.
void set_first_invocation(event& said, const std::string& id);

} // namespace troupe
