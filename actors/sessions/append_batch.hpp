// The appends of a session that are decided together.
//
// Invariant: `accepted` are the letters that will become the session's next
// events, in order, and `state` has exactly their shares judged. All letters,
// refused ones included, are answered in the order in which they were added.

#pragma once

#include "troupe/actors/messages.hpp"
#include "troupe/core/support/scope_state.hpp"

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

namespace troupe::actors {

/// Not thread-safe: for one session.
class append_batch {
public:
  using letters_type = std::vector<std::unique_ptr<append>>;

  /// Returns true if it has no letters.
  bool empty() const noexcept { return letters_.empty(); }

  letters_type& letters() noexcept { return letters_; }

  /// Number of accepted events.
  std::size_t size() const noexcept { return accepted_.size(); }

  const std::vector<append*>& accepted() const noexcept { return accepted_; }

  /// Returns true if a creation of the session was accepted.
  bool creates() const noexcept;

  /// Returns true if an accepted message continues from this pause.
  bool claims(std::string_view pause_id) const;

  /// Adds a letter, which is then judged or refused.
  append& add(std::unique_ptr<append> next) {
    return *letters_.emplace_back(std::move(next));
  }

  /// Refuses and adds the letter if an earlier append of its writer is refused.
  /// Otherwise returns false, and the caller keeps it.
  bool cut_off(std::unique_ptr<append>& next);

  /// Gives a retry the answer of the accepted event at `index`, or a conflict
  /// if its content differs.
  void join(std::unique_ptr<append> retry, std::size_t index);

  /// The same for an event that the session has.
  void join(std::unique_ptr<append> retry, const event_ptr& original);

  /// Judges a letter, and the past of a creation, against `state`. Accepts it,
  /// or fails and leaves nothing.
  result<void> judge(append& next,
                     scope_state& state,
                     bool undecided,
                     const size_limits& limits);

  /// Takes back and refuses the last accepted event. Returns it.
  append& drop_last(scope_state& state, error why);

  /// Takes back and refuses a creation with its past.
  void drop_creation(scope_state& state, error why);

  /// Takes back all accepted events.
  void drop_all(scope_state& state);

  /// Ends the judging: the accepted events are the session's now.
  void settle() noexcept { accepted_.clear(); }

  /// Forgets the letters, which were answered or sent on.
  void clear() noexcept { letters_.clear(); }

private:
  letters_type letters_;
  std::vector<append*> accepted_;
};

} // namespace troupe::actors
