// A reader that follows a session: it delivers every event once, in order,
// first the stored ones and then the new ones.
//
//   auto news = runtime.sessions().follow(key, {.from = 12});
//   for (const auto& event : news)
//     print(event->text());

#pragma once

#include "troupe/contexts/pending.hpp"
#include "troupe/core/event.hpp"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>

namespace troupe {

namespace detail {
class follow_control;
}

/// The place where a follower starts.
struct follow_options {
  /// Revision of the session after which events are delivered: 0 for all
  /// events. Unset: only events that are appended after the call.
  std::optional<std::uint64_t> from = {};
};

/// A reader of the events of one session.
///
/// Delivers each event once, in the order of the log, when it is acknowledged;
/// over a store also the events of other processes. Events are fetched when the
/// reader asks for them, so a slow reader delays no append and holds at most
/// 256 events. All members are thread-safe, but only one call of `next` may
/// wait at a time. The destructor closes the follower. While a follower waits,
/// its session stays in memory.
///
/// `next` fails, once, and the follower ends:
///
/// - `errc::not_found`: the session does not exist, is not at revision `from`
///   yet, or was removed. A session that is created again under the same key is
///   another one, and has to be followed anew.
/// - `errc::gone`: a trim deleted events that were not delivered yet. Follow
///   the session again from the oldest revision, which the message names.
/// - `errc::conflict`: the session lost an event that was delivered: the store
///   lost its last commits or was restored. Read the session again.
/// - `errc::store_failed`, `errc::corrupt`: the events cannot be read. Follow
///   the session again from `revision()`.
/// - `errc::cancelled`: the runtime has shut down.
/// - `errc::invalid_argument`: a bad key.
class follower {
public:
  /// Wraps a follower that `session_service::follow` has made.
  explicit follower(std::shared_ptr<detail::follow_control> control);
  /// Takes the follower over. The moved-from object can only be assigned to or
  /// destroyed.
  follower(follower&&) noexcept;
  /// Exchanges both followers. The former one is closed when the other object
  /// is destroyed.
  follower& operator=(follower&&) noexcept;
  ~follower();

  /// Returns the next event, or null after `close`. Waits until there is one.
  /// Fails with `errc::invalid_argument` while another call of `next` waits;
  /// that does not end the follower. For the other errors see above; further
  /// calls return null.
  pending<event_ptr> next();

  /// Number of the last event that was delivered; before the first one, the
  /// revision at which the follower starts. Unset until that is known.
  std::optional<std::uint64_t> revision() const;

  /// Ends the follower. A call of `next` that waits returns null.
  void close();

  /// Iterator for range-for. Blocks for each event, and throws the error of
  /// `next`.
  class iterator {
  public:
    /// Type of the elements, which are never null.
    using value_type = event_ptr;
    /// Type that the iterator concepts require. No distance is ever computed.
    using difference_type = std::ptrdiff_t;

    iterator() = default;

    /// Takes the first event from `source`, and blocks for it.
    explicit iterator(follower* source);

    /// The current event. A copy of it stays valid.
    const event_ptr& operator*() const { return current_; }

    /// Gives access to the pointer to the current event.
    const event_ptr* operator->() const { return &current_; }

    /// Blocks for the next event. Throws the error of `next`.
    iterator& operator++();

    /// Blocks for the next event and returns nothing, as the iterator has a
    /// single pass.
    void operator++(int) { ++*this; }

    friend bool operator==(const iterator& left, std::default_sentinel_t) {
      return left.current_ == nullptr;
    }

  private:
    follower* source_ = nullptr;
    event_ptr current_;
  };

  /// Takes the next event, and blocks for it. Events that were taken before are
  /// not repeated.
  iterator begin() { return iterator(this); }

  /// Equals an iterator after `close`.
  std::default_sentinel_t end() const noexcept { return {}; }

private:
  std::shared_ptr<detail::follow_control> control_;
};

} // namespace troupe
