// The verdict of a load test: whether the store holds every append that it
// acknowledged, and the differences.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::load {

/// Number of findings, by kind.
struct verdict {
  /// Appends that were acknowledged.
  std::uint64_t acknowledged = 0;
  /// Acknowledged but not stored.
  std::uint64_t lost = 0;
  /// Stored more than once.
  std::uint64_t doubled = 0;
  /// Stored although refused, or never sent.
  std::uint64_t ghosts = 0;
  /// Stored after one that the same caller sent later.
  std::uint64_t reordered = 0;
  /// Stored with missing or other changes.
  std::uint64_t torn = 0;
  /// Totals and states that differ from the logs.
  std::uint64_t wrong_totals = 0;
  /// Descriptions of the first findings.
  std::vector<std::string> findings;

  /// Returns true if all counts except `acknowledged` are 0.
  bool holds() const noexcept {
    return lost + doubled + ghosts + reordered + torn + wrong_totals == 0;
  }

  friend bool operator==(const verdict&, const verdict&) = default;
};

/// `"verdict: 1000 acknowledged, 0 lost, 0 doubled, order ok, totals ok"`.
std::string to_string(const verdict& found);

} // namespace troupe::load
