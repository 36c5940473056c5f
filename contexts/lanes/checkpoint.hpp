// The progress of an agent that waits for an answer from outside.
//
// The session stores it between two runs as JSON:
//
//     every agent    {"agent": string, "escalated": bool, …}
//     an LLM agent   {…, "waitsFor": [call id], "turn": [call id]}
//     a function     {…, "waitsFor": [call id], "turn": [], "key": string,
//                     "finished"?: number of ended agents below}
//     a parent       {…, "finished": number of ended sub-agents,
//                     "at": checkpoint}
//     with lanes     {…, "lanes": [
//                      {"lane": string, "at": checkpoint, "item"?: any}
//                    | {"lane": string, "ended": {"escalated": bool},
//                       "result"?: any}
//                    | {"lane": string, "failed": {"code", "reason": string}}]}
//     a workflow     {…, "run": string, "path": string, "lanes": [
//                      {"lane": "node@visit", "at": checkpoint}]}

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
/// A shared checkpoint, which never changes; null stands for none.
using checkpoint_ptr = std::shared_ptr<const checkpoint>;

/// The position at which one agent waits, with those of its sub-agents.
struct checkpoint {
  /// One lane of a parallel agent or a map: waiting, ended or failed.
  struct lane {
    /// Name of the sub-agent; for a map, the index of the element in decimal;
    /// for a workflow, `node@visit`.
    std::string name;
    /// The position where the lane waits. Null if the lane has ended; `failed`
    /// then tells whether it failed.
    checkpoint_ptr at = {};
    /// True if an event of the lane escalated. Stored only for a lane that has
    /// ended without a failure.
    bool escalated = false;
    /// The failure of a lane that has ended; unset if it waits or succeeded.
    std::optional<error> failed = {};
    /// Used by a map: the element of a waiting lane, and the result of a lane
    /// that has ended.
    json item = nullptr;
    /// The result of an ended lane of a map; null for other lanes.
    json result = nullptr;
  };

  /// Name of the agent that waits. After a transfer it is the agent that
  /// took over.
  std::string agent;
  /// True if one of its events escalated before it had to wait.
  bool escalated = false;
  /// For an LLM agent: the open calls, all of one turn. For the node of a
  /// workflow: its question.
  std::vector<std::string> waits_for = {};
  /// The calls of the turn: the open ones, and those that are answered but not
  /// yet processed.
  std::vector<std::string> turn = {};
  /// Number of sub-agents that have ended one after another, and the position
  /// where the next one waits.
  std::uint64_t finished = 0;
  /// The position of the agent below that waits; null for an LLM agent and for
  /// an agent with lanes.
  checkpoint_ptr at = {};
  /// For a parallel agent or a map: the lanes in order. For a workflow: the
  /// visits that wait; the session has those that have ended.
  std::vector<lane> lanes = {};
  /// For a workflow: the id of the invocation in which it began, and its path
  /// in its events. Empty for other agents.
  std::string run = {};
  std::string path = {};
  /// For a function or a tool that is the node of a workflow: the key of its
  /// visit (`node_context::key`). Empty for agents.
  std::string key = {};
};

/// Returns the checkpoint as JSON in the form that the beginning of this
/// header shows.
json to_json(const checkpoint& from);

/// Reads the output of `to_json`. Returns null if `data` is not a checkpoint;
/// another program may use the field.
checkpoint_ptr checkpoint_from_json(const json& data);

/// Returns the ids of all calls that the agent and its sub-agents wait for.
std::vector<std::string> waits_of(const checkpoint& from);

/// The end of an agent that did not fail.
struct agent_end {
  /// Makes the end of an agent that has ended, or that waits at `paused_`.
  agent_end(bool escalated_ = false, checkpoint_ptr paused_ = nullptr)
    : escalated(escalated_),
      paused(std::move(paused_)) {}

  /// True if one of its events escalated.
  bool escalated;
  /// If set, the agent has not ended and continues from here in a later run.
  checkpoint_ptr paused;
};

/// Unwinds the bodies of agents when one of them has to wait. It is not a
/// failure, so it is not a `std::exception`.
struct agent_paused {
  /// The position of the agent that waits; never null.
  checkpoint_ptr where;
};

} // namespace troupe
