// How far an agent has come that waits for an answer from outside.
//
// A checkpoint is JSON, since it lies in the session between two runs:
//
//   an LLM agent  {"agent": string, "waitsFor": [call id]}
//   one above     {"agent": string, "finished": number of agents below,
//                  "escalated": bool, "at": checkpoint}
//   one of lanes  {"agent": string, "lanes": [{"lane": string,
//                  "at": checkpoint | "ended": {"escalated": bool} |
//                  "failed": {"code": string, "reason": string}, …}]}

#pragma once

#include "troupe/core/json.hpp"

#include <optional>
#include <utility>

namespace troupe {

/// What came of an agent that did not fail.
struct agent_end {
  agent_end(bool escalated_ = false,
            std::optional<json> checkpoint_ = std::nullopt)
    : escalated(escalated_),
      checkpoint(std::move(checkpoint_)) {}

  /// Whether an event of it escalated.
  bool escalated;
  /// Set: it has not ended, and goes on from here in a later run.
  std::optional<json> checkpoint;
};

/// Takes the bodies of agents down when one of them has to wait. Nothing has
/// failed, so it is no `std::exception`; a body that catches everything throws
/// it again.
struct agent_paused {
  json checkpoint;
};

} // namespace troupe
