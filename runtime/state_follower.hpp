// A reader that follows the state of an app or a user: it waits for changes,
// and delivers the newest state.
//
//   auto changes = runtime.sessions().state_of_app("press").follow();
//   for (const auto& change : changes)
//     print(change.revision, change.keys);

#pragma once

#include "troupe/contexts/pending.hpp"
#include "troupe/core/state_change.hpp"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>

namespace troupe {

namespace detail {
class state_follow_control;
}

/// The place where a follower of a state starts.
struct state_follow_options {
  /// Revision that the reader knows, for example from `shared_state::snapshot`.
  /// If the state is newer, it is delivered at once. Unset: the present one.
  std::optional<std::uint64_t> from = {};
};

/// A reader of the state of one app, or of one user of an app.
///
/// Delivers the newest acknowledged state whenever it is newer than the one
/// delivered before; over a store it is durable, and may come from another
/// process. Nothing is queued for a reader: one that is slow gets several
/// changes in one delivery, never an older state, and always the last one. All
/// members are thread-safe, but only one call of `next` may wait at a time. The
/// destructor closes the follower. While a follower waits, its app or user
/// stays in memory. No session has to exist, nor the user.
///
/// `next` fails, once, and the follower ends:
///
/// - `errc::not_found`: the user was removed, or the state is not at revision
///   `from` yet. A user that is created again is another one, and has to be
///   followed anew. If another process has removed the user and created it
///   again before this process has looked, the follower ends only if the
///   revision is lower, or the same with other keys.
/// - `errc::conflict`: the store lost its last commits or was restored, and the
///   state is at a lower revision than the delivered one, or at the same one
///   with other keys. Read the state again.
/// - `errc::store_failed`, `errc::corrupt`: the state cannot be read. Follow it
///   again from `revision()`.
/// - `errc::cancelled`: the runtime has shut down.
/// - `errc::invalid_argument`: a bad name.
class state_follower {
public:
  /// Wraps a follower that `shared_state::follow` has made.
  explicit state_follower(
    std::shared_ptr<detail::state_follow_control> control);
  /// Takes the follower over. The moved-from object can only be assigned to or
  /// destroyed.
  state_follower(state_follower&&) noexcept;
  /// Exchanges both followers. The former one is closed when the other object
  /// is destroyed.
  state_follower& operator=(state_follower&&) noexcept;
  ~state_follower();

  /// Returns the next state, or nothing after `close`. Waits until there is
  /// one, and compares all keys with those of the last delivery. Fails with
  /// `errc::invalid_argument` while another call of `next` waits; that does not
  /// end the follower. For the other errors see above; further calls return
  /// nothing.
  pending<std::optional<state_change>> next();

  /// Revision of the last delivery; before the first one, the revision at which
  /// the follower starts. Unset until that is known.
  std::optional<std::uint64_t> revision() const;

  /// Ends the follower. A call of `next` that waits returns nothing.
  void close();

  /// Iterator for range-for. Blocks for each state, and throws the error of
  /// `next`.
  class iterator {
  public:
    /// Type of the elements.
    using value_type = state_change;
    /// Type that the iterator concepts require. No distance is ever computed.
    using difference_type = std::ptrdiff_t;

    iterator() = default;

    /// Takes the next state from `source`, and blocks for it.
    explicit iterator(state_follower* source);

    /// The current state.
    const state_change& operator*() const { return *current_; }

    /// Gives access to a member of the current state.
    const state_change* operator->() const { return &*current_; }

    /// Blocks for the next state. Throws the error of `next`.
    iterator& operator++();

    /// Blocks for the next state and returns nothing, as the iterator has a
    /// single pass.
    void operator++(int) { ++*this; }

    friend bool operator==(const iterator& left, std::default_sentinel_t) {
      return !left.current_;
    }

  private:
    state_follower* source_ = nullptr;
    std::optional<state_change> current_;
  };

  /// Takes the next state, and blocks for it.
  iterator begin() { return iterator(this); }

  /// Equals an iterator after `close`.
  std::default_sentinel_t end() const noexcept { return {}; }

private:
  std::shared_ptr<detail::state_follow_control> control_;
};

} // namespace troupe
