// Finds the event at which a run starts to read its session's history,
// searching from the newest event back, so that no more than necessary is read.
//
// A message may answer calls of an earlier run. The run that it starts then
// reads from the message of that earlier run on, and, if that one continued a
// pause, from the message of the run before, and so on.

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
  /// A search for a run that `message` starts, with agents that read the extent
  /// `reads`. If `recovered` is not empty, it is the id of a run that goes on:
  /// the search includes its events as those of a run whose calls are answered.
  history_search(const content& message,
                 const history_extent& reads,
                 const std::string& recovered = {});

  /// Returns true if the search needs older events.
  bool needs_more() const noexcept;

  /// Takes the event with this number. It must be the event before that of the
  /// last call; events that a rewind has taken back may be left out.
  void take(std::uint64_t number, const event& said);

  /// Ends the search: there is no event before `oldest`. Event 1 ends it, too.
  void finish(std::uint64_t oldest);

  /// The first event that the newest summary does not cover. 1 if there is no
  /// summary, if none was searched for, or if the summary does not begin with
  /// the first event: older ones may count then, too (summed_ranges.hpp).
  std::uint64_t since_summary() const noexcept {
    return since_summary_.value_or(1);
  }

  /// Number of the event that starts the newest user turn
  /// (`starts_user_turn`). 1 if there is none, or if none was searched for.
  std::uint64_t turn() const noexcept { return turn_.value_or(1); }

  /// The first event of the runs whose calls are answered; unset if the message
  /// answers no call that was found.
  const std::optional<std::uint64_t>& answered() const noexcept {
    return answered_;
  }

private:
  bool is_taken_back(std::uint64_t number, const event& said);
  void look_for_summary(std::uint64_t number, const event& said);
  void look_for_calls(std::uint64_t number, const event& said);
  void look_for_messages(std::uint64_t number, const event& said);
  void add_calls_of(const content& message);
  void read_from(std::uint64_t number);

  // Targets of the search: a summary, the end time that it covers, the message
  // that starts the newest user turn, calls by their ids, pauses by the ids of
  // their events, and messages by their invocation ids.
  bool wants_summary_;
  bool wants_user_turn_;
  std::optional<timestamp> end_time_;
  // The summary covers no event before the newest one that is older than this.
  std::optional<timestamp> start_time_;
  std::set<std::string, std::less<>> calls_;
  std::set<std::string, std::less<>> pauses_;
  std::set<std::string, std::less<>> runs_;

  // The events from this number on are taken, or were taken back.
  std::uint64_t behind_ = UINT64_MAX;

  std::optional<std::uint64_t> since_summary_;
  std::optional<std::uint64_t> turn_;
  std::optional<std::uint64_t> answered_;
};

} // namespace troupe
