// The part of its session's history that an agent reads.
//
// A run begins once the events that its agents read are in memory, and keeps no
// older ones. Events of the run itself are always read, whatever the extent.

#pragma once

#include "troupe/core/event_log.hpp"

#include <algorithm>
#include <cstdint>

namespace troupe {

/// The events before the run's message that an agent reads. An event is read if
/// any of the fields includes it. With the default values the agent reads none.
struct history_extent {
  /// True for every event of the session.
  bool is_whole = false;
  /// True for the events that the newest summary does not cover
  /// (agents/summary.hpp); without a summary, for every event.
  bool from_summary = false;
  /// Number of events before the run's message, the newest ones. Events that a
  /// rewind has taken back do not count.
  std::uint64_t newest_max = 0;
  /// True for the events from the newest message of the user on that belongs to
  /// no task (agents/agent.hpp, `agent_mode::task`).
  bool from_turn = false;

  /// Every event of the session.
  static constexpr history_extent all() noexcept { return {.is_whole = true}; }

  /// No event before the run's message.
  static constexpr history_extent none() noexcept { return {}; }

  /// The newest `count` events before the run's message; 0 is `none()`.
  static constexpr history_extent newest(std::uint64_t count) noexcept {
    return {.newest_max = count};
  }

  /// The events that the newest summary does not cover.
  static constexpr history_extent since_summary() noexcept {
    return {.from_summary = true};
  }

  /// The events since the newest message that belongs to no task.
  static constexpr history_extent since_turn() noexcept {
    return {.from_turn = true};
  }

  /// Returns true if this extent includes everything that `other` reads.
  constexpr bool covers(const history_extent& other) const noexcept {
    return is_whole
           || (!other.is_whole && (from_summary || !other.from_summary)
               && (from_turn || !other.from_turn)
               && newest_max >= other.newest_max);
  }

  /// Returns the union of both extents.
  friend constexpr history_extent
  operator|(const history_extent& left, const history_extent& right) noexcept {
    return {.is_whole = left.is_whole || right.is_whole,
            .from_summary = left.from_summary || right.from_summary,
            .newest_max = std::max(left.newest_max, right.newest_max),
            .from_turn = left.from_turn || right.from_turn};
  }

  friend bool operator==(const history_extent&, const history_extent&)
    = default;
};

/// Event numbers in the session (counted from 1) where a run starts to read.
struct history_start {
  /// The run's message.
  std::uint64_t message = 1;
  /// The first event that no summary covers.
  std::uint64_t since_summary = 1;
  /// The first event of the runs whose calls the message answers. A number of
  /// at least `message` if it answers none.
  std::uint64_t answered = UINT64_MAX;
  /// The newest message of the user before this one that belongs to no task.
  std::uint64_t turn = 1;

  /// Returns the number of the oldest event that an agent reads. `live` are the
  /// newest events of the session, without those that were taken back.
  std::uint64_t first_read(const history_extent& reads,
                           const event_slice& live) const noexcept {
    if (reads.is_whole)
      return 1;
    auto first = std::min(message, answered);
    if (reads.from_summary)
      first = std::min(first, since_summary);
    if (reads.from_turn)
      first = std::min(first, turn);
    const auto newest = live.count_back(message, reads.newest_max);
    return std::max<std::uint64_t>(std::min(first, newest), 1);
  }
};

} // namespace troupe
