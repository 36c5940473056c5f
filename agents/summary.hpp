// Summaries: events that replace earlier events for the reader of a
// long history. ADK calls them compactions. An event keeps its summary
// in `actions.compaction`:
//
//   {"compactedContent": {"role", "parts"}, "startRevision"?: integer,
//    "endRevision"?: integer, "startTimestamp"?: seconds,
//    "endTimestamp"?: seconds}
//
// It covers the events from number `startRevision` to number `endRevision`.
// Without `endRevision`, it covers the events up to the newest one whose time
// is at most `endTimestamp`; without that field, too, all events before itself.
// Without `startRevision`, it begins behind the newest event before its end
// whose time is below `startTimestamp`; without that field, too, with the first
// event. Only an event on no branch counts. Nothing is deleted.

#pragma once

#include "troupe/core/event.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace troupe {

/// A summary as an event holds it. Without `end_revision` and `end_time` it
/// covers all events before its own.
struct summary {
  /// Content that replaces the covered events.
  troupe::content content;
  /// Number of the oldest event that the summary covers.
  std::optional<std::uint64_t> start_revision = {};
  /// Number of the newest event that the summary covers.
  std::optional<std::uint64_t> end_revision = {};
  /// Without `start_revision`: the summary covers no event before the newest
  /// one whose time is below this.
  std::optional<timestamp> start_time = {};
  /// Without `end_revision`: the summary covers the events up to the newest one
  /// whose time is at most this.
  std::optional<timestamp> end_time = {};
};

/// The summary in an event; unset if it has none.
std::optional<summary> summary_of(const event& said);

/// Makes an event by `user`, as in ADK, with the summary `text` of all events
/// up to number `end_revision`, or of all events before itself.
event make_summary_event(std::string text,
                         std::optional<std::uint64_t> end_revision = {});

} // namespace troupe
