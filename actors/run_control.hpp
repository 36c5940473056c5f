// State that a run shares with the holder of its handle: the events to hand
// out, the outcome, and the request to cancel.

#pragma once

#include "troupe/actors/engine/ref.hpp"
#include "troupe/contexts/lost_update.hpp"
#include "troupe/contexts/pending.hpp"
#include "troupe/core/event.hpp"

#include <caf/fwd.hpp>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace troupe::actors {
class inbox_actor;
struct setup;
} // namespace troupe::actors

namespace troupe::detail {

/// Thread-safe. Completions are called on a thread of the runtime. Once the
/// runtime has ended, they are called on the thread that causes the answer.
class run_control {
public:
  run_control(std::shared_ptr<actors::setup> shared, std::string id)
    : invocation_id(std::move(id)),
      shared_(std::move(shared)) {}

  const std::string invocation_id;

  /// Requested when the run is cancelled.
  std::stop_source stop;
  /// Set when the run has told its session that the run is over. The session
  /// then does not start it.
  std::atomic<bool> has_left = false;

  // -- called by the run ------------------------------------------------------

  /// Sets the actor that `cancel` reaches. If the run was cancelled before, the
  /// actor is told at once.
  void attach(actors::ref<actors::inbox_actor> invocation);

  /// Hands out one event. Of partial events that are not taken, only the newest
  /// are kept.
  void deliver(event_ptr said);

  /// Sets the ids of the calls that a paused run waits for. Call before `end`.
  void wait_for(std::vector<std::string> ids);

  /// Counts a lost update. Returns true if it is the first one of its key.
  bool add_loss(lost_update lost);

  void end(result<void> outcome);

  // -- called by the holder ---------------------------------------------------

  result<event_ptr> next();
  void next(completion<event_ptr> done);

  result<void> wait();
  void wait(completion<void> done);

  void cancel(error reason);

  /// Cancels the run, which stays open in a store unless it ends without an
  /// error. No effect on a run that was cancelled before.
  void leave(error reason);

  /// Returns true if the run was cancelled by `leave`.
  bool is_left() const;

  bool has_ended() const;

  std::vector<std::string> waits_for() const;

  /// The first lost update of each key, and the number of all.
  std::vector<lost_update> losses() const;
  std::size_t losses_count() const;

private:
  static constexpr std::size_t partial_max = 256;

  bool has_events() const noexcept { return first_ < events_.size(); }

  // Adds an event after the others. Requires `mutex_`, as does `take`.
  void keep(event_ptr said);

  enum class stopping : std::uint8_t { none, cancel, leave };

  void stop_for(error reason, stopping how);

  // The next answer, if there is one: an event, or the end of the run.
  std::optional<result<event_ptr>> take();

  const std::shared_ptr<actors::setup> shared_;
  mutable std::mutex mutex_;
  // Two, so that an event wakes no thread that waits for the end.
  std::condition_variable has_answer_;
  std::condition_variable has_ended_;
  // Events before `first_` have been taken.
  std::vector<event_ptr> events_;
  std::size_t first_ = 0;
  std::size_t partial_count_ = 0;
  std::optional<result<void>> outcome_;
  bool failure_told_ = false;
  std::vector<std::string> waits_for_;
  std::vector<lost_update> losses_;
  std::size_t losses_count_ = 0;
  completion<event_ptr> next_waiter_;
  std::vector<completion<void>> end_waiters_;
  actors::ref<actors::inbox_actor> invocation_;
  std::optional<error> wished_end_;
  stopping stopped_ = stopping::none;
};

} // namespace troupe::detail
