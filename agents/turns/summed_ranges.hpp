// The summaries of a history that count, and the events that each stands for.

#pragma once

#include "troupe/agents/summary.hpp"
#include "troupe/core/event_log.hpp"

#include <cstdint>
#include <vector>

namespace troupe {

/// A summary and its events.
struct summed_range {
  /// Numbers of the oldest and the newest event that the summary stands for.
  /// The range is empty if `last` is below `first`.
  std::uint64_t first = 1;
  std::uint64_t last = 0;
  /// Number of the event with the summary.
  std::uint64_t number = 0;
  summary made;
};

/// Returns the summaries in `events` that count, in the order of their events.
/// `events` must be live (`event_slice::live`).
///
/// The newest summary counts. An older one counts only if it begins before all
/// newer ones that count, and then for the events before them. So each event
/// has one summary or none, also if summaries that were made at the same time
/// overlap. A summary that ends before the slice begins does not count if
/// events between both would be missing: those from `oldest` on, the first
/// event that the session has. Reads back to a summary that begins
/// with the first event, or else all events.
std::vector<summed_range> summed_ranges(const event_slice& events,
                                        std::uint64_t oldest = 1);

} // namespace troupe
