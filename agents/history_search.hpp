// Where a run starts to read its session's history, found from the newest event
// back, so that no more is read than it takes.
//
// What an agent waited for lies behind the message that began its run. So a run
// that brings an answer reads from there on: from the call that is answered
// back to the message of the run that made it, and on through the runs that one
// had gone on from.

#pragma once

#include "troupe/contexts/history_extent.hpp"
#include "troupe/core/event.hpp"

#include <cstdint>
#include <optional>
#include <set>
#include <string>

namespace troupe {

class history_search {
public:
  /// For a run of `message` by agents that read so much.
  history_search(const content& message, const history_extent& reads);

  /// Whether older events have to be looked at.
  bool needs_more() const noexcept;

  /// Looks at the event of that number, the one before that of the last call.
  void take(std::uint64_t number, const event& said);

  /// The first event that no summary stands for: 1 if there is no summary or
  /// none was looked for.
  std::uint64_t since_summary() const noexcept {
    return since_summary_.value_or(1);
  }

  /// What that summary says; nothing if there is none.
  const std::optional<content>& summary() const noexcept { return summary_; }

  /// The first event of the runs whose calls are answered; unset if the message
  /// answers none that was found.
  const std::optional<std::uint64_t>& answered() const noexcept {
    return answered_;
  }

private:
  void look_for_summary(std::uint64_t number, const event& said);
  void look_for_calls(std::uint64_t number, const event& said);
  void look_for_messages(std::uint64_t number, const event& said);
  void add_calls_of(const content& message);
  void read_from(std::uint64_t number);

  // What is still looked for: a summary, the end of what it stands for, calls
  // by their ids, pauses by those of their events, and the messages of runs.
  bool wants_summary_;
  std::optional<timestamp> end_time_;
  std::set<std::string, std::less<>> calls_;
  std::set<std::string, std::less<>> pauses_;
  std::set<std::string, std::less<>> runs_;

  std::optional<std::uint64_t> since_summary_;
  std::optional<content> summary_;
  std::optional<std::uint64_t> answered_;
};

} // namespace troupe
