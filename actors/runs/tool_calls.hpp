// The tool calls of one model turn: starts the tools, ends those that take too
// long, and runs agents that are tools on lanes of their own.

#pragma once

#include "troupe/actors/runs/tool_job.hpp"

#include <caf/actor_control_block.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace troupe::actors {

class lane_actor;
class nested_session;
struct lane_ended;

/// Owned by the waiting lane; used on its thread only.
class tool_calls {
public:
  /// `wait` is the number of the lane's wait; late answers are recognised
  /// by it.
  tool_calls(lane_actor& owner, tool_turn& request, std::uint64_t wait);

  /// Starts the tools. Some may have ended before it returns.
  void start();

  /// Returns true if all calls have ended.
  bool is_over() const noexcept { return left_ == 0; }

  /// Cancels agents that run as tools. Tools have stop tokens.
  void cancel(const error& reason);

  /// Abandons tools that have not stopped within the grace period. Agents stop
  /// by themselves and are awaited.
  void abandon();

  /// The lane of an agent has ended.
  void receive(lane_ended& ended);

private:
  // A tool that is an agent.
  struct agent_call {
    std::shared_ptr<tool_job> job;
    ref<lane_actor> lane;
    // Null if the agent runs in the session of the caller.
    std::shared_ptr<nested_session> session;
    bool timed_out = false;
  };

  void prepare(std::size_t index, tool_job& job);
  // Makes a callback that calls `act` on the lane, if the lane still waits for
  // these calls.
  template <class Act>
  auto on_lane(Act act) const;
  void receive(std::size_t index, tool_job& ended);
  void give_up(std::size_t index);
  void finish(std::size_t index);
  void start_agent(std::size_t index, const std::shared_ptr<tool_job>& job);

  lane_actor& owner_; // Owns this.
  tool_turn& request_;
  const std::uint64_t wait_;
  std::vector<std::shared_ptr<tool_job>> jobs_; // Null once the call has ended.
  std::size_t left_ = 0;
  std::map<std::size_t, agent_call> agents_; // By the index of the call.
  bool grace_is_over_ = false;
};

} // namespace troupe::actors
