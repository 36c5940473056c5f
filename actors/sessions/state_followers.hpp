// The letters of readers that wait for the next change of an app or a user. An
// owner that was never followed has none of these objects.

#pragma once

#include "troupe/actors/letters/follow_state.hpp"
#include "troupe/actors/sessions/waiting_readers.hpp"

#include <cstdint>
#include <memory>
#include <optional>

namespace troupe::actors {

/// The state of an owner, as it shows it to readers.
struct shown_state {
  const state_map& keys;
  std::uint64_t revision;
  /// The counts of `state_place`.
  std::uint64_t removals;
  std::uint64_t losses;
};

class state_followers : public waiting_readers<follow_state> {
public:
  state_followers() noexcept;

  /// Returns the letter if it has an answer: a newer state, the start, or the
  /// end. Otherwise keeps it, or drops that of a reader that has ended.
  std::unique_ptr<follow_state> serve(std::unique_ptr<follow_state> wanted,
                                      const shown_state& now);

  /// Returns true if kept letters may have an answer at this revision.
  bool may_answer(std::uint64_t revision) const noexcept {
    return !empty() && (was_loaded_ || revision != revision_);
  }

  /// Notes that the owner has loaded its state.
  void note_load() noexcept;

  /// Returns all letters, so that each is served again.
  letter_list take_all();

private:
  state_place place_at(const shown_state& now) const;
  std::optional<error> check(const follow_state& wanted,
                             const shown_state& now) const;

  // Number of the load that the owner's keys are from.
  std::uint64_t load_;
  // The lowest revision that a reader of a kept letter has seen.
  std::uint64_t revision_ = 0;
  bool was_loaded_ = false;
};

/// The error of readers whose user has been removed.
error removed_user(const owner_name& user);

} // namespace troupe::actors
