// The coroutine of one visit of a workflow's node: runs the function, tool or
// agent, or the items of a map, and emits the event that ends the visit. It has
// a lane of its own, or for a function that runs alone that of the workflow.

#pragma once

#include "troupe/actors/runs/lane.hpp"
#include "troupe/agents/graphs/schedule.hpp"
#include "troupe/agents/turns/node_event.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace troupe::actors {

/// One attempt of a visit, or of an item of a map (`workflow_place::items`).
struct node_visit {
  /// The workflow; it and the graph outlive the visit.
  const agent* workflow = nullptr;
  const workflow_graph* graph = nullptr;
  workflow_place at;
  workflow_visit visit;
  std::uint64_t attempt = 1;
  /// The value of `node_context::key`.
  std::string id;
  /// Number of the visit among those of the workflow, for its lane and commits.
  std::uint64_t key = 0;
  /// As `node_context::attempt_facts::waited`.
  std::shared_ptr<std::atomic<std::int64_t>> waited = {};
  /// Hears of the event that ends the visit; null for an item.
  commit_listener* listener = nullptr;

  /// Returns true if it is an item of a map.
  bool is_item() const noexcept { return at.items > 0; }
};

/// Runs the visit or the item of a map that `start` describes. `lane` is the
/// lane that was started with `start`. It may be the lane of the workflow if
/// `runs_on_caller` is true for the node. Throws `troupe::error` and what user
/// code throws. Returns a checkpoint if its agent, or the function or tool
/// itself, has to wait for an answer. `start` must outlive the task.
task<agent_end> run_node(lane_actor& lane, const lane_start& start);

/// Returns true if visits of the node may run on the workflow's lane: the node
/// is a function, no coroutine, and has no time limit.
bool runs_on_caller(const workflow_graph::node& node) noexcept;

} // namespace troupe::actors
