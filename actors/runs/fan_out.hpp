// The lanes of a parallel agent, or of the items of a map: starts them, counts
// them, and turns their failures into one outcome.

#pragma once

#include "troupe/actors/engine/ref.hpp"
#include "troupe/actors/running/temp_space.hpp"
#include "troupe/agents/agent.hpp"

#include <chrono>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors {

class lane_actor;
struct lane_ended;
struct node_visit;

/// The request of a coroutine that waits until its lanes have ended.
struct fan_out_request {
  fan_out_request() = default;

  /// One lane: its input, then its outcome.
  struct lane {
    agent which;
    std::string branch;
    /// Number of the agent among the lanes of the same agent, from 1.
    std::uint64_t number = 1;
    /// Its own `temp:` keys; null: it shares those of the waiting lane.
    std::shared_ptr<temp_space> temp = {};
    /// The checkpoint to continue from; null: from the start.
    checkpoint_ptr from = {};
    /// The item of a workflow's map that the lane runs, and its id
    /// (`visit_id`); null: it runs `which`.
    std::shared_ptr<const node_visit> visit = {};
    std::string visit_key = {};

    // The outcome. A lane that `is_over` before the fan-out starts is not run.
    bool is_over = false;
    bool succeeded = false;
    bool escalated = false;
    /// The lane's error; unset if it succeeded or was told to end.
    std::optional<error> failed = {};
    /// An event has told the error.
    bool is_told = false;
    /// The last event with visible text; null if there is none.
    event_ptr event = {};
    /// The output of a workflow.
    std::optional<json> output = {};
    /// The checkpoint of a lane that waits for an answer from outside, or null.
    checkpoint_ptr paused = {};
  };

  const invocation_context* caller = nullptr;
  std::vector<lane> lanes;
  std::size_t lanes_max = 0;
  lane_failures on_failure = lane_failures::fail_fast;
  std::size_t quorum = 0;
  std::optional<std::chrono::milliseconds> timeout;

  /// The lane that failed first; unset if none has.
  std::optional<std::size_t> first_failed;
  /// Error of the whole fan-out, if it failed.
  result<void> outcome;
  /// True if the fan-out has not failed, but needs lanes that have paused.
  bool is_paused = false;
  std::coroutine_handle<> waiting;
};

/// Owned by the waiting lane; used on its thread only.
class fan_out {
public:
  fan_out(lane_actor& owner, fan_out_request& request);

  /// Starts lanes up to the limit of concurrent lanes, in portions.
  void start_more();

  void receive(lane_ended& ended);

  /// Ends a lane whose time limit has passed.
  void time_out(std::size_t index);

  /// Ends all lanes.
  void cancel(const error& reason);

  bool is_over() const noexcept;

  /// Writes the outcome into the request.
  void finish();

  /// A `more_lanes` letter is on its way.
  bool more_under_way = false;

private:
  bool may_start() const noexcept;
  bool was_told_to_end(std::size_t index, const error& failure) const;
  void start(std::size_t index);
  void end_rest(const error& reason);

  lane_actor& owner_; // Owns this.
  fan_out_request& request_;
  std::vector<ref<lane_actor>> running_;
  std::vector<bool> timed_out_;
  std::size_t next_ = 0;
  std::size_t left_ = 0; // Lanes that run now.
  std::size_t succeeded_ = 0;
  std::size_t failures_ = 0;
  bool ending_ = false; // The remaining lanes were told to end.
};

} // namespace troupe::actors
