// The events that a session keeps for the runs that wait for their turn on it.

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

  /// Of one that was added, and has not changed since.
  void remove(const start_run& waiting) {
    firsts_.erase(firsts_.find(fixed_first(waiting)));
    newest_.erase(newest_.find(waiting.reads.newest_max));
  }

  /// The oldest event that one of them reads, if it gets its turn behind event
  /// number `revision`; above all others: none.
  std::uint64_t first_read(std::uint64_t revision) const {
    if (firsts_.empty())
      return UINT64_MAX;
    const history_start now{.message = revision + 1};
    return std::min(*firsts_.begin(),
                    now.first_read(history_extent::newest(*newest_.rbegin())));
  }

private:
  // What does not move with the newest event.
  static std::uint64_t fixed_first(const start_run& waiting) {
    if (waiting.reads.is_whole)
      return 1;
    return std::min(waiting.history.answered,
                    waiting.reads.from_summary ? waiting.history.since_summary
                                               : UINT64_MAX);
  }

  std::multiset<std::uint64_t> firsts_;
  std::multiset<std::uint64_t> newest_;
};

} // namespace troupe::actors
