// What a run and the one who holds it share: the events on their way out, the
// end, and the wish to cancel.

#pragma once

#include "troupe/core/session_request.hpp"

#include <caf/actor_control_block.hpp>
#include <caf/fwd.hpp>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace troupe::actors {
struct setup;
}

namespace troupe::detail {

/// Thread-safe. Completions are called off the caller's thread.
class run_control {
public:
  run_control(std::shared_ptr<actors::setup> shared, std::string id)
    : invocation_id(std::move(id)),
      shared_(std::move(shared)) {}

  const std::string invocation_id;

  /// Asked to stop as soon as anybody wishes the end.
  std::stop_source stop;
  /// Set when the run has told its session that it is over: a turn that it
  /// still waits for would be for nobody.
  std::atomic<bool> has_left = false;

  // -- from the run
  // ------------------------------------------------------------

  /// Makes `invocation` the one that `cancel` reaches, at once if it was wished
  /// already.
  void attach(caf::strong_actor_ptr invocation);

  /// Hands out one event. Of the partial ones that nobody takes the newest
  /// stay.
  void deliver(event_ptr said);

  /// The ids of the calls that a run waits for that has paused; before its end.
  void wait_for(std::vector<std::string> ids);

  void end(result<void> outcome);

  // -- from the holder
  // ---------------------------------------------------------

  result<event_ptr> next();
  void next(completion<event_ptr> done);

  result<void> wait();
  void wait(completion<void> done);

  void cancel(error reason);

  bool has_ended() const;

  std::vector<std::string> waits_for() const;

private:
  static constexpr std::size_t partial_max = 256;

  bool has_events() const noexcept { return first_ < events_.size(); }

  // Adds it behind the others; called with the lock held, as is `take`.
  void keep(event_ptr said);

  // The next answer if there is one: an event, or the end.
  std::optional<result<event_ptr>> take();

  const std::shared_ptr<actors::setup> shared_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Those before `first_` have been taken.
  std::vector<event_ptr> events_;
  std::size_t first_ = 0;
  std::size_t partial_count_ = 0;
  std::optional<result<void>> outcome_;
  bool failure_told_ = false;
  std::vector<std::string> waits_for_;
  completion<event_ptr> next_waiter_;
  std::vector<completion<void>> end_waiters_;
  caf::strong_actor_ptr invocation_;
  std::optional<error> wished_end_;
};

} // namespace troupe::detail
