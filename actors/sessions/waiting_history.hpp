// Extent of the events that a session keeps for its waiting runs.

#pragma once

#include "troupe/actors/messages.hpp"

#include <algorithm>
#include <cstdint>
#include <set>

namespace troupe::actors {

class waiting_history {
public:
  void add(const start_run& waiting) {
    firsts_.insert(fixed_first(waiting));
    newest_.insert(waiting.reads.newest_max);
  }

  /// Removes a run that was added and has not changed since.
  void remove(const start_run& waiting) {
    firsts_.erase(firsts_.find(fixed_first(waiting)));
    newest_.erase(newest_.find(waiting.reads.newest_max));
  }

  /// The oldest event that a waiting run reads if its message becomes event
  /// `revision + 1`; UINT64_MAX if no run waits. `live` are the session's
  /// newest events.
  std::uint64_t first_read(std::uint64_t revision,
                           const event_slice& live) const {
    if (firsts_.empty())
      return UINT64_MAX;
    const history_start now{.message = revision + 1};
    const auto newest = history_extent::newest(*newest_.rbegin());
    return std::min(*firsts_.begin(), now.first_read(newest, live));
  }

  /// The largest number of events before its message that a waiting run reads.
  std::uint64_t newest_max() const {
    return newest_.empty() ? 0 : *newest_.rbegin();
  }

private:
  // The first event that the run reads, as far as it does not depend on the
  // number of its message.
  static std::uint64_t fixed_first(const start_run& waiting) {
    if (waiting.reads.is_whole)
      return 1;
    return std::min(
      {waiting.history.answered,
       waiting.reads.from_summary ? waiting.history.since_summary : UINT64_MAX,
       waiting.reads.from_turn ? waiting.history.turn : UINT64_MAX});
  }

  std::multiset<std::uint64_t> firsts_;
  std::multiset<std::uint64_t> newest_;
};

} // namespace troupe::actors
