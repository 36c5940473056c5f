// How far an agent has come that waits for an answer from outside.
//
// It lies in the session between two runs, as JSON:
//
//   every agent    {"agent": string, "escalated": bool, …}
//   an LLM agent   {…, "waitsFor": [call id], "turn": [call id]}
//   one above      {…, "finished": number of agents below, "at": checkpoint}
//   one of lanes   {…, "lanes": [{"lane": string, "at": checkpoint, "item"?:
//   any}
//                   | {"lane": string, "ended": {"escalated": bool},
//                      "result"?: any}
//                   | {"lane": string, "failed": {"code", "reason": string}}]}

#pragma once

#include "troupe/core/error.hpp"
#include "troupe/core/json.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

struct checkpoint;
using checkpoint_ptr = std::shared_ptr<const checkpoint>;

struct checkpoint {
  struct lane {
    std::string name;
    /// Where it waits; null: it is over, with `failed` or well.
    checkpoint_ptr at = {};
    bool escalated = false;
    std::optional<error> failed = {};
    /// Of a map: the element of a lane that waits, the result of one that has
    /// ended.
    json item = nullptr;
    json result = nullptr;
  };

  std::string agent;
  /// An event of it escalated before it had to wait.
  bool escalated = false;
  /// Of an LLM agent: the open calls, all of one turn.
  std::vector<std::string> waits_for = {};
  /// With those that have been answered since, but have not been gone on with.
  std::vector<std::string> turn = {};
  /// Agents below that have ended, one after another, and where the next waits.
  std::uint64_t finished = 0;
  checkpoint_ptr at = {};
  /// Of a parallel agent or a map, in their order.
  std::vector<lane> lanes = {};
};

json to_json(const checkpoint& from);

/// Null if `data` is no checkpoint: it may be what others keep.
checkpoint_ptr checkpoint_from_json(const json& data);

/// The ids of all calls that it waits for, those below included.
std::vector<std::string> waits_of(const checkpoint& from);

/// What came of an agent that did not fail.
struct agent_end {
  agent_end(bool escalated_ = false, checkpoint_ptr paused_ = nullptr)
    : escalated(escalated_),
      paused(std::move(paused_)) {}

  /// Whether an event of it escalated.
  bool escalated;
  /// Set: it has not ended, and goes on from here in a later run.
  checkpoint_ptr paused;
};

/// Takes the bodies of agents down when one of them has to wait. Nothing has
/// failed, so it is no `std::exception`.
struct agent_paused {
  checkpoint_ptr where;
};

} // namespace troupe
