// The tokens that the events of a session have used, for budgets.
//
// Events are counted once and in order, so a model call costs the events since
// the former one. Counts of sessions outlive their runs, in a table of bounded
// size.

#pragma once

#include "troupe/core/event_log.hpp"
#include "troupe/core/key.hpp"

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

namespace troupe {

/// Tokens of the live events of a session up to one of its events.
struct token_count {
  /// Number of the newest event that is counted; 0 if none is.
  std::uint64_t number = 0;
  /// Id of that event.
  std::string id;
  std::uint64_t tokens = 0;
  /// Number of the newest event that was gone when the count began.
  std::uint64_t trimmed_to = 0;

  /// Adds the events of `live` that are not counted yet. The events before
  /// `live` must be counted.
  void add(const event_slice& live);

  /// Returns false if events have been taken back since the count, or the
  /// session is another one or has fewer events. `live` holds the newest events
  /// of the session, whose newest one is number `revision`; the counted event
  /// need not be in it.
  bool fits(const event_slice& live, std::uint64_t revision) const;
};

/// Tokens of one event (`usageMetadata.totalTokenCount`); 0 without usage. A
/// count beyond the range of numbers is cut.
std::uint64_t tokens_of(const event& said);

/// The counts of many sessions. Thread-safe.
class token_counts {
public:
  /// The last count of a session; one of no event if there is none.
  token_count find(const session_key& session) const;

  void keep(const session_key& session, token_count count);

private:
  mutable std::mutex mutex_;
  std::unordered_map<session_key, token_count> counts_;
};

} // namespace troupe
