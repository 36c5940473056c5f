// Decides whether a session is due for a summary, and which events it covers.
// The rules are those of ADK's compaction.
//
// A summary always begins with the first event: it takes in the former one. Its
// end leaves no call open, so that a model never sees a result without its
// call.

#pragma once

#include "troupe/agents/compaction.hpp"
#include "troupe/core/event_log.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

struct compaction_plan {
  /// The given events are too few to decide. Nothing else is set.
  bool needs_older = false;
  /// Number of the newest event that the summary covers; 0: none is due.
  std::uint64_t last = 0;
  /// Number of the event with the newest summary; 0 if there is none.
  std::uint64_t former = 0;
  /// Times of the oldest and the newest covered event, for readers of ADK.
  timestamp start_time{};
  timestamp end_time{};
  summary_request request;
};

/// Plans a summary. `live` are the newest events of the session, without those
/// that were taken back. `oldest` is the number of the first event that the
/// session has. If one of the agents `tasks` has an open task, the summary
/// covers no event of its user turn.
compaction_plan plan_compaction(const event_slice& live,
                                const compaction_options& chosen,
                                std::uint64_t oldest = 1,
                                const std::vector<std::string>& tasks = {});

/// Returns the number of the event with the newest summary that counts; 0 if
/// `live` has none. `oldest` is as above.
std::uint64_t newest_summary(const event_slice& live, std::uint64_t oldest = 1);

/// Makes the event of a planned summary.
event make_compaction_event(const compaction_plan& plan, content text);

} // namespace troupe
