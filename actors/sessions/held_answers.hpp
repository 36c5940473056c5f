// Answers that are durable and wait for the newest state of user and app.
//
// Invariant: answers leave in the order in which they came. An answer that
// waits for a refresh holds back all later ones.

#pragma once

#include "troupe/actors/messages.hpp"

#include <cstdint>
#include <deque>
#include <optional>

namespace troupe::actors {

/// Not thread-safe: for one session.
class held_answers {
public:
  struct group {
    letter_list letters;
    /// Number of the refresh that the letters wait for; 0: they wait only for
    /// those before them.
    std::uint64_t refresh = 0;
    /// The session as the refresh showed it.
    std::optional<result<session>> seen;
  };

  bool empty() const noexcept { return groups_.empty(); }

  /// Holds answers until a refresh is noted. Returns its number.
  std::uint64_t hold(letter_list answers);

  /// Holds an answer behind all others. Requires that there are some.
  void hold_behind(letter_ptr answer);

  /// Notes a refresh. It also serves answers that wait for an earlier one.
  void note(std::uint64_t refresh, const result<session>& seen);

  /// Lets all answers go, as if each refresh had failed with `why`.
  void give_up(const error& why);

  /// The oldest answers, if they wait for nothing.
  std::optional<group> take();

private:
  std::deque<group> groups_;
  std::uint64_t refreshes_ = 0;
};

} // namespace troupe::actors
