// State that a reader of a session's events shares with its letters: the events
// that it has fetched and not delivered, and its place in the log.
//
// Invariant: at most one letter is under way. It is sent when the reader asks
// for an event and none is left, so a reader that is slow fetches nothing.

#pragma once

#include "troupe/actors/letters/follow.hpp"
#include "troupe/contexts/pending.hpp"
#include "troupe/core/event.hpp"
#include "troupe/core/key.hpp"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

namespace troupe::actors {
struct setup;
} // namespace troupe::actors

namespace troupe::detail {

/// Thread-safe. Completions are called on a thread of the runtime, or on the
/// thread that asks if the event is there. Once the runtime has ended, they are
/// called on the thread that ends the reader.
class follow_control final
  : public actors::follow_receiver,
    public std::enable_shared_from_this<follow_control> {
public:
  /// `from` is the number of the last event that is not delivered; unset: the
  /// newest event.
  follow_control(std::shared_ptr<actors::setup> shared,
                 session_key key,
                 std::optional<std::uint64_t> from);

  /// Takes the place in the log. Called once, before `next`.
  void start();

  result<event_ptr> next();
  void next(completion<event_ptr> done);
  std::optional<result<event_ptr>> next_now();

  /// Ends the reader, and drops the events that it has fetched.
  void close();

  /// Ends the reader with an error, after the events that it has fetched.
  void cancel(error reason);

  void receive(result<actors::followed> answer) override;

  /// Number of the last event that was delivered, or at first that of `from`;
  /// unset until the place is known.
  std::optional<std::uint64_t> revision() const;

private:
  using lock = std::unique_lock<std::mutex>;

  // The next answer, if there is one: an event, or the end. Requires `mutex_`.
  std::optional<result<event_ptr>> take();

  bool is_busy() const noexcept { return is_blocked_ || next_waiter_; }

  void serve(lock guard);
  void serve_later();
  void ask();
  void end(result<void> outcome, bool keeps_events);
  void stop_watching();

  const std::shared_ptr<actors::setup> shared_;
  const session_key key_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  actors::followed fetched_;
  std::size_t taken_ = 0; // Events of `fetched_` that were delivered.
  std::optional<actors::follow_place> place_;
  bool is_wish_ = false;     // The place is the caller's, not a session's.
  bool is_asked_ = false;    // A letter is under way.
  bool is_watching_ = false; // It is counted as a watcher of the store.
  bool is_blocked_ = false;  // A thread waits in `next`.
  bool is_serving_ = false;  // A thread calls completions.
  completion<event_ptr> next_waiter_;
  std::optional<result<void>> outcome_;
  bool failure_told_ = false;
};

} // namespace troupe::detail
