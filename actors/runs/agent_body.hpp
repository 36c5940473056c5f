// The bodies of all kinds of agents, as coroutines on a lane.

#pragma once

#include "troupe/actors/runs/lane.hpp"

#include <cstdint>
#include <string>
#include <utility>

namespace troupe::actors {

/// The place of a call of an agent. It has a constructor because g++ 12
/// destroys temporary aggregates in a co_await expression twice.
struct agent_call {
  explicit agent_call(std::string above_ = {}, std::uint64_t number_ = 1)
    : above(std::move(above_)),
      number(number_) {}

  /// Place of the agent that calls, or of the visit of a workflow; may be
  /// empty.
  std::string above;
  /// Number of the call among those of the same agent there, from 1.
  std::uint64_t number;
  /// True if the caller calls agents one after another, not at the same time.
  bool in_order = false;
  /// The caller, if its body begins anew in a recovered run and repeats its
  /// calls; null otherwise.
  const invocation_context* repeats = nullptr;
};

/// Runs `which` on `lane`, called by the agent of `caller` (null at the root).
/// Starts from the checkpoint `from`, unless it is null; that may be the
/// checkpoint of an agent that `which` had handed over to. In a recovered run,
/// agents that had ended are skipped, and others go on where they were.
///
/// Throws `troupe::error` and the exceptions of user code; `errc::conflict` if
/// the checkpoint belongs to another agent.
task<agent_end> run_agent(lane_actor& lane,
                          const invocation_context* caller,
                          const agent& which,
                          std::string branch,
                          agent_call call,
                          checkpoint_ptr from);

} // namespace troupe::actors
