// How much of its session's history an agent reads.
//
// A run begins once the events that its agents read are in memory, and keeps no
// older ones. What a run appends itself is always read, whatever the extent.

#pragma once

#include <algorithm>
#include <cstdint>

namespace troupe {

struct history_extent {
  /// Every event of the session.
  bool is_whole = false;
  /// What the newest summary does not stand for (agents/summary.hpp); without
  /// one, every event.
  bool from_summary = false;
  /// Events before the message of the run, the newest ones.
  std::uint64_t newest_max = 0;

  static constexpr history_extent all() noexcept { return {.is_whole = true}; }

  /// Nothing before the message of the run.
  static constexpr history_extent none() noexcept { return {}; }

  static constexpr history_extent newest(std::uint64_t count) noexcept {
    return {.newest_max = count};
  }

  static constexpr history_extent since_summary() noexcept {
    return {.from_summary = true};
  }

  /// Whether whoever reads this has all that `other` reads.
  constexpr bool covers(const history_extent& other) const noexcept {
    return is_whole
           || (!other.is_whole && (from_summary || !other.from_summary)
               && newest_max >= other.newest_max);
  }

  /// What either of them reads.
  friend constexpr history_extent
  operator|(const history_extent& left, const history_extent& right) noexcept {
    return {.is_whole = left.is_whole || right.is_whole,
            .from_summary = left.from_summary || right.from_summary,
            .newest_max = std::max(left.newest_max, right.newest_max)};
  }

  friend bool operator==(const history_extent&, const history_extent&)
    = default;
};

/// The events, by their numbers in the session (from 1), with which a run
/// starts to read.
struct history_start {
  /// The message of the run.
  std::uint64_t message = 1;
  /// The first one that no summary stands for.
  std::uint64_t since_summary = 1;
  /// The first one of the runs whose calls the message answers, or `message`
  /// and above if it answers none.
  std::uint64_t answered = UINT64_MAX;

  /// The oldest event that an agent reads.
  constexpr std::uint64_t
  first_read(const history_extent& reads) const noexcept {
    if (reads.is_whole)
      return 1;
    auto first = std::min(message, answered);
    if (reads.from_summary)
      first = std::min(first, since_summary);
    const auto newest
      = message > reads.newest_max ? message - reads.newest_max : 1;
    return std::max<std::uint64_t>(std::min(first, newest), 1);
  }
};

} // namespace troupe
