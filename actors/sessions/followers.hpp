// The letters of readers that wait for the next events of a session. A session
// that was never followed has none of these objects.

#pragma once

#include "troupe/actors/letters/follow.hpp"
#include "troupe/actors/parts/event_window.hpp"
#include "troupe/actors/sessions/waiting_readers.hpp"

#include <cstdint>

namespace troupe::actors {

class followers : public waiting_readers<follow> {
public:
  explicit followers(std::uint64_t incarnation) : incarnation_(incarnation) {}

  /// Number of the session among those of the same key, without a store.
  std::uint64_t incarnation() const noexcept { return incarnation_; }

private:
  const std::uint64_t incarnation_;
};

/// A session as its readers know it.
struct followed_session {
  bool exists;
  std::uint64_t incarnation;
  /// Number of the newest event that was acknowledged.
  std::uint64_t revision;
  /// Number of the newest event that is gone; 0: none.
  std::uint64_t trimmed_to;
  const event_window& events;
};

/// Reasons why a session does not have the place of a reader.
enum class misplacement : std::uint8_t {
  none,
  unknown, ///< There is no such session.
  beyond,  ///< The reader wishes to start after the end.
  removed, ///< The session that the reader followed was removed.
  lost,    ///< The session lost events that the reader has seen.
  gone,    ///< A trim has deleted events behind the place.
};

misplacement check_place(const follow& wanted, const followed_session& session);

/// The error that ends the reader. `revision` is that of the session, and
/// `trimmed_to` the number of the newest event that is gone.
error to_error(misplacement why,
               const session_key& key,
               const follow& wanted,
               std::uint64_t revision,
               std::uint64_t trimmed_to = 0);

} // namespace troupe::actors
