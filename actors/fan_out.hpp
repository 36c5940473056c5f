// The lanes of a parallel agent: starts them, counts them, and decides what
// their failures come to.

#pragma once

#include "troupe/actors/temp_space.hpp"
#include "troupe/agents/agent.hpp"

#include <caf/actor_control_block.hpp>

#include <chrono>
#include <coroutine>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors {

class lane_actor;
struct lane_ended;

/// What a coroutine waits for while its lanes run.
struct fan_out_request {
  fan_out_request() = default;

  /// What a lane is and does.
  struct lane {
    agent which;
    std::string branch;
    /// Its own `temp:` keys; null: those of the lane that waits.
    std::shared_ptr<temp_space> temp = {};
    /// Where it goes on; null: from the start.
    checkpoint_ptr from = {};

    // What came of it; a lane that is over before the fan-out is not run.
    bool is_over = false;
    bool succeeded = false;
    bool escalated = false;
    /// Why it failed, if it did; of one that was told to end, nothing.
    std::optional<error> failed = {};
    /// What it said last; null if it said nothing.
    event_ptr said = {};
    /// Where it waits for an answer from outside, or null.
    checkpoint_ptr paused = {};
  };

  const invocation_context* caller = nullptr;
  std::vector<lane> lanes;
  std::size_t lanes_max = 0;
  lane_failures on_failure = lane_failures::fail_fast;
  std::size_t quorum = 0;
  std::optional<std::chrono::milliseconds> timeout;

  /// Why the fan-out failed, if it did.
  result<void> outcome;
  /// It has not failed, but some of its lanes have paused, and it needs them.
  bool is_paused = false;
  std::coroutine_handle<> waiting;
};

/// Belongs to the lane that waits; used on its thread alone.
class fan_out {
public:
  fan_out(lane_actor& owner, fan_out_request& request);

  /// Starts lanes, as many as may run at the same time, in portions.
  void start_more();

  void receive(lane_ended& ended);

  /// The time of a lane is up.
  void time_out(std::size_t index);

  /// Ends all lanes.
  void cancel(const error& reason);

  bool is_over() const noexcept;

  /// Puts into the request what came of it.
  void finish();

  /// A letter that says to start more is under way.
  bool more_under_way = false;

private:
  bool may_start() const noexcept;
  bool was_told_to_end(std::size_t index, const error& failure) const;
  void start(std::size_t index);
  void end_rest(const error& reason);

  lane_actor& owner_; // Owns this.
  fan_out_request& request_;
  std::vector<caf::strong_actor_ptr> running_;
  std::vector<bool> timed_out_;
  std::size_t next_ = 0;
  std::size_t left_ = 0; // Lanes that run.
  std::size_t succeeded_ = 0;
  std::size_t failures_ = 0;
  bool ending_ = false; // The rest was told to end.
};

} // namespace troupe::actors
