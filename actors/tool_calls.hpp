// The calls of one model turn at work: starts their tools, gives up on those
// that take too long, and runs agents that are tools on lanes of their own.

#pragma once

#include "troupe/actors/tool_job.hpp"

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

/// Belongs to the lane that waits; used on its thread alone.
class tool_calls {
public:
  /// `wait` is the number of the lane's wait, by which answers find it.
  tool_calls(lane_actor& owner, tool_turn& request, std::uint64_t wait);

  /// Starts the tools. Some may be through before it returns.
  void start();

  /// Whether none is left.
  bool is_over() const noexcept { return left_ == 0; }

  /// Tells agents to end; tools follow their stop tokens.
  void cancel(const error& reason);

  /// Leaves behind what has not stopped by now. Agents end by themselves, and
  /// are awaited.
  void abandon();

  /// The lane of an agent has ended.
  void receive(lane_ended& ended);

private:
  // A tool that is an agent.
  struct agent_call {
    std::shared_ptr<tool_job> job;
    caf::strong_actor_ptr lane;
    std::shared_ptr<nested_session> session;
    bool timed_out = false;
  };

  void prepare(std::size_t index, tool_job& job);
  // Calls `act` on the lane, if it still waits for this.
  template <class Act>
  auto on_lane(Act act) const;
  void receive(std::size_t index, tool_job& ended);
  void give_up(std::size_t index);
  void finish(std::size_t index);
  void start_agent(std::size_t index, const std::shared_ptr<tool_job>& job);

  lane_actor& owner_; // Owns this.
  tool_turn& request_;
  const std::uint64_t wait_;
  std::vector<std::shared_ptr<tool_job>> jobs_; // Null once it has ended.
  std::size_t left_ = 0;
  std::map<std::size_t, agent_call> agents_; // By the place of their calls.
  bool grace_is_over_ = false;
};

} // namespace troupe::actors
