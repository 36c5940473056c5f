// Summaries: events that stand for those before them, in histories that are too
// long to be read.
//
// ADK calls them compactions. An event keeps its summary in
// `actions.compaction`:
//
//   {"compactedContent": {"role", "parts"}, "endRevision"?: integer,
//    "startTimestamp"?: seconds, "endTimestamp"?: seconds}
//
// It stands for all events up to number `endRevision`. Without that field it
// stands for the events before it, back from the newest one that is no younger
// than `endTimestamp`, or without that field, too, from itself. Only an event
// on no branch counts. Nothing is deleted.

#pragma once

#include "troupe/core/event.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace troupe {

struct summary {
  content said;
  /// The newest event that it stands for.
  std::optional<std::uint64_t> end_revision = {};
  std::optional<timestamp> end_time = {};
};

/// What the event carries, or nothing.
std::optional<summary> summary_of(const event& said);

/// An event, by `user` as in ADK, that says `text` in the place of all events
/// up to number `end_revision`, or of all before itself.
event make_summary_event(std::string text,
                         std::optional<std::uint64_t> end_revision = {});

} // namespace troupe
